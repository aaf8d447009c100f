import { dirname } from 'node:path'
import { DEFAULT_CONFIG } from '../../config/defaults.ts'
import type { Refusal } from '../../errors/refusal.ts'
import { tolerateSystemErrors } from '../../kernel/system-error.ts'
import type { InstallCommand, UninstallCommand } from '../commands/install.ts'
import { findWritablePaths } from '../doctor/paths.ts'
import { installConfiguration, installDriver, linkOperatorCommand } from './driver.ts'
import { findInstallConfiguration, findInstallExecutable } from './executable.ts'
import { choosePluginDirectory, WRITABLE_PLUGIN_DIR } from './plugin-directory.ts'
import {
  createInstallRefusal,
  DEFAULT_VOLUMES_DIR,
  type InstallerRun,
  type InstallSite,
  removeInstallLeftovers,
  resolveInstallPaths,
  runWithInstallLock,
  takeInstallStep,
} from './site.ts'
import { uninstallDriver } from './uninstall.ts'

/**
 * Installs or upgrades the driver. If it is killed at any step, the old or the new driver is complete, and the next run
 * removes staged files.
 * @throws {Refusal} with the fault first, then the remedies; any other error is the system's
 */
export async function installModekeep(job: InstallerRun<InstallCommand>): Promise<void> {
  const configuration = findInstallConfiguration(job)
  using executable = findInstallExecutable(job)
  const site = resolveInstallSite(job)
  refuseWritablePaths(site)
  const isNew = makePluginDirectory(site)
  const removeStaged = () => removeInstallLeftovers({ ...site, report() {} })
  await runWithInstallLock(site, async () => {
    try {
      makeInstallDirectories(site)
      await installDriver(site, executable)
      await installConfiguration(site, configuration)
      linkOperatorCommand(site)
    } catch (error) {
      tolerateSystemErrors(removeStaged)
      throw error
    }
    removeStaged()
  })
  if (isNew && site.root === '') {
    job.report('note', 'the plugin directory is new: restart the kubelet, which looks for it only at its start')
  }
}

/** Removes the driver and its link. Throws like `installModekeep`. */
export async function uninstallModekeep(job: InstallerRun<UninstallCommand>): Promise<void> {
  const site = resolveInstallSite(job)
  await runWithInstallLock(site, () => uninstallDriver(site))
}

function resolveInstallSite<Command extends InstallCommand | UninstallCommand>(
  job: InstallerRun<Command>,
): InstallSite<Command> {
  const { files } = job.admin
  const { root: named } = job.command
  const real = named === undefined ? '' : tolerateSystemErrors(() => files.realPath(named))
  if (real === undefined) throw createInstallRefusal(`--root: there is no directory ${named}`)
  // Canonical like paths of mountinfo, and '' for the running system, because every path is `root/...`.
  const root = real === '/' ? '' : real
  const { directory, reason } = choosePluginDirectory(job, root)
  const site = { ...job, ...resolveInstallPaths(files, root, directory) }
  job.report('plugin dir', `${site.plugins} (${reason})`)
  refusePathsOutsideRoot(site)
  return site
}

/** Refuses paths that leave --root: a link that is correct in that system may lead into the running one. */
export function refusePathsOutsideRoot({
  files,
  root,
  plugins,
  state,
  logFile,
  configDirectory,
  link,
}: InstallSite): void {
  if (root === '') return
  for (const place of [plugins, state, dirname(logFile), configDirectory, dirname(link)]) {
    let existing = place
    while (existing !== '/' && !files.hasDirectory(existing)) existing = dirname(existing)
    if (`${files.realPath(existing)}/`.startsWith(`${root}/`)) continue
    const remedy = 'make the link or path in it relative, or run this in that system with chroot'
    throw createInstallRefusal([`${place} leads out of ${root}`, remedy])
  }
}

/** @returns true if the directory is new: kubelet searches for it only at its start */
export function makePluginDirectory(site: InstallSite): boolean {
  const { files, plugins } = site
  const isNew = !files.hasDirectory(plugins)
  const text = `${plugins} (0755)`
  try {
    if (isNew) takeInstallStep(site, `create ${text}`, () => files.makeDirectory(plugins, 0o755), 'created', text)
  } catch (error) {
    throw createUnwritableRefusal(plugins, `it does not exist and cannot be created (${(error as Error).message})`)
  }
  if (!site.command.isDry && !files.canWrite(plugins)) throw createUnwritableRefusal(plugins, 'it is read-only')
  return isNew
}

function createUnwritableRefusal(directory: string, why: string): Refusal {
  return createInstallRefusal([
    `cannot write to ${directory}: ${why}`,
    `where /usr is read-only, set the kubelet's flag --volume-plugin-dir=${WRITABLE_PLUGIN_DIR}`,
    `(or volumePluginDir: ${WRITABLE_PLUGIN_DIR} in its configuration), restart it, and run this again`,
  ])
}

// Packages create groups up to this id (/etc/login.defs). With rsyslog, Debian's /var/log belongs to such a group.
const MAX_SYSTEM_GROUP_ID = 999

/**
 * Refuses directories that users other than root can write. Such a user could run programs as root (driver), mount
 * forbidden volumes (configuration) or let root write elsewhere (state, log). Runs before anything is created there.
 * @throws {Refusal} that names each path with its owner and mode; a dry run only warns
 */
export function refuseWritablePaths(site: InstallSite<InstallCommand>): void {
  const { plugins, configDirectory, config, state, logFile, command, warn } = site
  const logs = dirname(logFile)
  const found = [
    ...findWritableInstallPaths(site, 'the driver', plugins),
    ...[configDirectory, config].flatMap((path) => findWritableInstallPaths(site, 'the configuration', path)),
    ...findWritableInstallPaths(site, 'the state', state),
    ...[logs, logFile].flatMap((path) => findWritableInstallPaths(site, 'the log', path)),
  ]
  const places = [...new Map(found.map((one) => [one.place, one])).values()].sort(compareWritablePlaces)
  const isWarned = ({ what, place, stat: { uid, gid, mode } }: (typeof found)[number]) =>
    command.isDry ||
    (what === 'the log' && place !== logs && uid === 0 && gid <= MAX_SYSTEM_GROUP_ID && !(mode & 0o002))
  for (const { message } of places.filter(isWarned)) warn(message)
  const refused = places.filter((one) => !isWarned(one))
  if (refused.length === 0) return
  const remedy = refused.map(({ place }) => `chown root ${place}; chmod go-w ${place}`).join('; ')
  throw createInstallRefusal([...refused.map(({ message }) => message), `${remedy}; then run this again`])
}

const compareWritablePlaces = (one: { place: string }, other: { place: string }) => (one.place < other.place ? -1 : 1)

/** Finds what users other than root can write at a path or its nearest existing parent. */
function findWritableInstallPaths({ admin, files, root }: InstallSite, what: string, path: string) {
  let existing = path
  while (existing !== '/' && files.stat(existing) === undefined) existing = dirname(existing)
  return [existing, files.realPath(existing)]
    .flatMap((at) => findWritablePaths(admin.host, at, root))
    .map(({ place, stat }) => {
      const owner = `uid ${stat.uid}, gid ${stat.gid}, mode ${(stat.mode & 0o7777).toString(8).padStart(4, '0')}`
      return {
        what,
        place,
        stat,
        message: `${place} can be written by others than root (${owner}): they could replace ${what}`,
      }
    })
}

export function makeInstallDirectories(site: InstallSite): void {
  const { files, root, state, stateDir, configText, example } = site
  const make = (path: string, mode: number) => {
    if (files.hasDirectory(path)) return
    const text = `${path} (${mode.toString(8).padStart(4, '0')})`
    takeInstallStep(site, `create ${text}`, () => files.makeDirectory(path, mode), 'created', text)
  }
  make(state, 0o700)
  const { mode = 0o700 } = files.stat(state) ?? {}
  if ((mode & 0o7777) !== 0o700)
    takeInstallStep(site, `set the mode of ${state} to 0700`, () => files.chmod(files.realPath(state), 0o700))
  // Only the default prefix is created; the operator creates a prefix that the configuration names.
  if (!configText.includes('"allow"')) {
    const above = dirname(DEFAULT_VOLUMES_DIR)
    if (stateDir !== above) make(root + above, 0o700)
    make(root + DEFAULT_VOLUMES_DIR, 0o755)
  }
  make(dirname(site.logFile), 0o750)
  make(site.configDirectory, 0o755)
  if (files.head(example, EXAMPLE_CONFIG_TEXT.length + 1)?.toString() === EXAMPLE_CONFIG_TEXT) return
  takeInstallStep(
    site,
    `write ${example} (0644)`,
    () => files.replace(example, EXAMPLE_CONFIG_TEXT, 0o644),
    'written',
    example,
  )
}

/** The default configuration, formatted like driver/config.example.json. */
const EXAMPLE_CONFIG_TEXT = `${JSON.stringify(DEFAULT_CONFIG, null, 2).replace(
  /"(allow|map)": [\s\S]*?^ {2}\]/gm,
  (rules) => rules.replace(/\s+/g, ' ').replaceAll('[ ', '[').replaceAll(' ]', ']'),
)}\n`
