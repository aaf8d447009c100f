import { dirname } from 'node:path'
import { removeEmptyStagingMount, resolveCloneStagingPath } from '../../container/clone-staging.ts'
import { parseMountinfo } from '../../kernel/mount-table/mountinfo.ts'
import { tolerateSystemErrors } from '../../kernel/system-error.ts'
import { warnOnFailure } from '../../state/session.ts'
import type { UninstallCommand } from '../commands/install.ts'
import { checkDriverDirectory } from './driver.ts'
import {
  createInstallRefusal,
  createStagedFileName,
  DEFAULT_VOLUMES_DIR,
  type InstallSite,
  removeStagedPath,
  takeInstallStep,
} from './site.ts'

const MAX_SHOWN_MOUNTS = 5
/** A table of 100,000 mounts has some 20 MiB. */
const MAX_MOUNT_TABLE_BYTES = 1 << 27

/** Removes the driver, and with --purge its files except the pods' data. */
export function uninstallDriver(site: InstallSite<UninstallCommand>) {
  const { files, report, driverDirectory, link } = site
  checkDriverDirectory(site)
  refuseWhileMounted(site, (problem) => site.warn(`${problem} going on because of --force`))
  if (!files.hasDirectory(driverDirectory)) report('unchanged', `no driver in ${site.plugins}`)
  else {
    const text = `rename ${driverDirectory} to a dot name, then remove it`
    takeInstallStep(site, text, () => removeInstalledDriver(site), 'removed', driverDirectory)
  }
  if (files.target(link) === site.linkTarget) {
    takeInstallStep(site, `remove the link ${link}`, () => files.remove(link), 'removed', link)
  } else if (files.stat(link, 'of a link itself')) report('kept', `${link}: it does not lead to this driver`)
  removeCloneStaging(site)
  if (site.command.isPurging) return purgeInstalledFiles(site)
  for (const place of [site.state, dirname(site.logFile), site.configDirectory]) {
    if (files.stat(place)) report('kept', place)
  }
  report(
    'note',
    'to remove what was kept: "install.sh --uninstall --purge", or on a cluster --purge in the command of the container uninstall',
  )
}

/** Unmounts the staging directory of clones. The runtime's plugin does so at its end, unless it was killed. */
function removeCloneStaging(site: InstallSite<UninstallCommand>): void {
  const { admin, state, warn, report } = site
  const node = { host: admin.host, config: { stateDir: state }, warn }
  const staging = resolveCloneStagingPath(node)
  const isMounted = () => findMountPoints(site, staging)?.includes(staging) === true
  if (!isMounted()) return
  takeInstallStep(site, `unmount ${staging}`, () =>
    warnOnFailure(site, `cannot unmount ${staging}`, () => removeEmptyStagingMount(node)),
  )
  if (!site.command.isDry) report(isMounted() ? 'kept' : 'removed', staging)
}

/** Lists mount points below --root that contain `part`, in this mount namespace and that of process 1; undefined: unknown. */
function findMountPoints({ files, command, root }: InstallSite, part: string): string[] | undefined {
  const readMountTable = (pid: string) =>
    tolerateSystemErrors(() => files.readForeign(`${command.proc ?? '/proc'}/${pid}/mountinfo`, MAX_MOUNT_TABLE_BYTES))
  const own = readMountTable('self')
  if (own === undefined) return undefined
  try {
    const points = [own, readMountTable('1') ?? ''].flatMap(parseMountinfo).map(({ mountPoint }) => mountPoint)
    const matching = new Set(points.filter((point) => point.startsWith(`${root}/`) && point.includes(part)))
    return [...matching].filter((point) => !isMountRepeatedInContainer(point, matching)).sort()
  } catch {
    // A line could not be parsed. The result is unknown, so that --force applies.
    return undefined
  }
}

/** True if the mount is a container's second view of a mount of the node, below a directory of its own. */
function isMountRepeatedInContainer(point: string, points: ReadonlySet<string>): boolean {
  for (let at = point.indexOf('/', 1); at > 0; at = point.indexOf('/', at + 1)) {
    if (points.has(point.slice(at))) return true
  }
  return false
}

/** @param continueForced called with the problem instead of a refusal, if --force allows it */
function refuseWhileMounted(site: InstallSite<UninstallCommand>, continueForced: (problem: string) => void) {
  const { isForced, isPurging, proc = '/proc' } = site.command
  const mounted = findMountPoints(site, '/volumes/modekeep~fs/')
  if (mounted?.length === 0) return
  const problem = mounted
    ? 'volumes of modekeep/fs are mounted:'
    : `cannot read the mount tables in ${proc}, so volumes of modekeep/fs may be mounted`
  if (isForced && !isPurging) return continueForced(problem)
  throw createInstallRefusal([
    problem,
    ...(mounted ?? []).slice(0, MAX_SHOWN_MOUNTS),
    'without the driver the kubelet cannot unmount them and their pods hang in Terminating:',
    `drain the node first${isPurging ? '' : ', or use --force'}`,
  ])
}

function removeInstalledDriver(site: InstallSite<UninstallCommand>): void {
  const { files, plugins, driverDirectory } = site
  const stage = createStagedFileName(`${plugins}/.modekeep~fs`)
  const aside = `${stage}/gone`
  files.makeDirectory(stage, 0o700)
  try {
    files.rename(driverDirectory, aside)
    files.sync(plugins)
    // A call of kubelet may have mounted since the first check. From here on no call can begin.
    refuseWhileMounted(site, () => {})
  } catch (error) {
    // The driver is restored, because a node with volumes needs it.
    tolerateSystemErrors(() => {
      if (files.stat(driverDirectory)) return
      files.rename(aside, driverDirectory)
      files.sync(plugins)
    })
    if (files.stat(aside)) site.warn(`cannot put the driver back: rename ${aside} to ${driverDirectory}`)
    // The stage is empty, unless the driver could not be restored.
    files.removeEmpty(stage)
    throw error
  }
  removeStagedPath(site, stage)
}

function purgeInstalledFiles(site: InstallSite<UninstallCommand>) {
  const { files, warn, state, stateDir, logFile, configDirectory, config, example, aside } = site
  if (findMountPoints(site, `${state}/`)?.length !== 0) return warn(`something is mounted below ${state}: kept`)
  if (/\/\.\.?\//.test(`${stateDir}/`)) warn(`${state} is not a plain path: kept`)
  else if (!stateDir.includes('modekeep')) warn(`${state} does not look like modekeep's alone: kept`)
  else takeInstallStep(site, `remove the state in ${state}`, () => purgeStateDirectory(site), 'purged', state)
  const logs = dirname(logFile)
  const removeLogs = () => {
    for (const name of files.list(logs).map((name) => `${logs}/${name}`)) {
      if (name === logFile || name.startsWith(`${logFile}.`)) files.remove(name)
    }
    if (logs.slice(site.root.length).includes('modekeep')) files.removeEmpty(logs)
  }
  takeInstallStep(site, `remove ${logFile} and its older files`, removeLogs, 'purged', logFile)
  const removeConfiguration = () => {
    for (const file of [config, example, aside.config, aside.example]) files.remove(file)
    files.removeEmpty(configDirectory)
  }
  takeInstallStep(site, `remove ${config} and config.example.json`, removeConfiguration, 'purged', configDirectory)
}

/** Removes the state, except sources that the configuration names and the default source: they hold the pods' data. */
function purgeStateDirectory({ files, report, root, state, configText }: InstallSite): void {
  const volumes = root + DEFAULT_VOLUMES_DIR
  for (const entry of files.list(state).map((name) => `${state}/${name}`)) {
    const isData = entry === volumes || configText.includes(`"${entry.slice(root.length)}`)
    if (!isData) files.removeTree(entry)
    else if (!files.removeEmpty(entry)) report('kept', `${entry}: it holds data`)
  }
  for (const directory of [volumes, state, dirname(volumes)]) files.removeEmpty(directory)
}
