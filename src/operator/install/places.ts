import { dirname } from 'node:path'
import { Refusal } from '../../refusal/refusal.ts'
import { DEFAULT_CONFIG } from '../../request/defaults.ts'
import { writers } from '../doctor/paths.ts'
import { WRITABLE_DIR } from './plugin-directory.ts'
import { act, type Site, VOLUMES_DIR } from './site.ts'

/** Below --root a link that is right in that system can lead to the same place of the one that runs this. */
export function stayBelowRoot({ files, root, plugins, state, logFile, configDirectory, link }: Site): void {
  if (root === '') return
  for (const place of [plugins, state, dirname(logFile), configDirectory, dirname(link)]) {
    let existing = place
    while (existing !== '/' && !files.hasDirectory(existing)) existing = dirname(existing)
    if (`${files.realPath(existing)}/`.startsWith(`${root}/`)) continue
    const way = 'make the link or path in it relative, or run this in that system with chroot'
    throw new Refusal([`${place} leads out of ${root}`, way])
  }
}

/** @returns whether it is new: kubelet looks for the directory only at its start */
export function makePluginDirectory(site: Site): boolean {
  const { files, plugins } = site
  const isNew = !files.hasDirectory(plugins)
  try {
    if (isNew) act(site, `create ${plugins} (0755)`, () => files.makeDirectory(plugins, 0o755))
  } catch (error) {
    throw cannotWrite(plugins, `it does not exist and cannot be created (${(error as Error).message})`)
  }
  if (!site.command.isDry && !files.canWrite(plugins)) throw cannotWrite(plugins, 'it is read-only')
  return isNew
}

function cannotWrite(directory: string, why: string): Refusal {
  return new Refusal([
    `cannot write to ${directory}: ${why}`,
    `where /usr is read-only, set the kubelet's flag --volume-plugin-dir=${WRITABLE_DIR}`,
    `(or volumePluginDir: ${WRITABLE_DIR} in its configuration), restart it, and run this again`,
  ])
}

/** Who writes to the driver's directory runs programs as root; to the configuration's, mounts what no pod may have. */
export function warnAboutWriters({ admin, files, root, warn }: Site, directory: string, what: string): void {
  if (!files.hasDirectory(directory)) return
  for (const place of writers(admin, files.realPath(directory), root).sort()) {
    warn(`${place} can be written by others than root: they could replace ${what}`)
  }
}

export function makePlaces(site: Site): void {
  const { files, root, state, stateDir, configText, example } = site
  const make = (path: string, mode: number) => {
    if (files.hasDirectory(path)) return
    const text = `${path} (${mode.toString(8).padStart(4, '0')})`
    act(site, `create ${text}`, () => files.makeDirectory(path, mode), 'created', text)
  }
  make(state, 0o700)
  const { mode = 0o700 } = files.stat(state) ?? {}
  if ((mode & 0o7777) !== 0o700) act(site, `set the mode of ${state} to 0700`, () => files.chmod(state, 0o700))
  // Only the default prefix is ours to make; one that the configuration names is the operator's.
  if (!configText.includes('"allowedSources"')) {
    const above = dirname(VOLUMES_DIR)
    if (stateDir !== above) make(root + above, 0o700)
    make(root + VOLUMES_DIR, 0o755)
  }
  make(dirname(site.logFile), 0o750)
  make(site.configDirectory, 0o755)
  if (files.head(example, EXAMPLE.length + 1)?.toString() === EXAMPLE) return
  act(site, `write ${example} (0644)`, () => files.replace(example, EXAMPLE, 0o644), 'written', example)
}

/** The defaults, as driver/config.example.json has them. */
const EXAMPLE = `${JSON.stringify(DEFAULT_CONFIG, null, 2).replace(/\[[^\]]*\]/g, (list) =>
  list.replace(/\s+/g, ' ').replace('[ ', '[').replace(' ]', ']'),
)}\n`
