import { dirname } from 'node:path'
import type { NodeFiles } from '../../host/node-files.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { DEFAULT_CONFIG } from '../../request/defaults.ts'
import { writers } from '../doctor/permissions.ts'
import { act, hasDirectory, type Job } from './job.ts'
import { cannotWrite } from './plugin-directory.ts'

const VOLUMES_DIR = '/var/lib/modekeep/volumes'

export type Places = ReturnType<typeof placesOf>

/**
 * Where things lie: below `root`, but for those whose names end in Dir or Target, which are paths as the node sees them.
 * @param root '' for the system that runs
 */
export function placesOf(files: NodeFiles, root: string, pluginDir: string) {
  const configDirectory = `${root}/etc/modekeep`
  const config = `${configDirectory}/config.json`
  const configText = files.head(config, LONGEST_CONFIG)?.toString() ?? ''
  // From the text, as a configuration with a fault, or none at all to a parser, has its directories too.
  const named = (key: 'stateDir' | 'logFile') =>
    new RegExp(`"${key}"\\s*:\\s*"(/[^"\\\\]*)"`).exec(configText)?.[1] ?? DEFAULT_CONFIG[key]
  const stateDir = named('stateDir')
  const [plugins, state, commands] = [root + pluginDir, root + stateDir, `${root}/usr/local/sbin`]
  const example = `${configDirectory}/config.example.json`
  return {
    root,
    plugins,
    driverDirectory: `${plugins}/modekeep~fs`,
    driver: `${plugins}/modekeep~fs/fs`,
    /** The operator's command. */
    link: `${commands}/modekeep`,
    linkTarget: `${pluginDir}/modekeep~fs/fs`,
    state,
    stateDir,
    volumesDir: VOLUMES_DIR,
    logFile: root + named('logFile'),
    configDirectory,
    config,
    configText,
    example,
    /** Written and then renamed or removed. One name each, so that the next run removes what a killed one has left. */
    aside: {
      probe: `${state}/.install-probe.json`,
      unfinishedProbe: `${state}/.install-probe.json.new`,
      config: `${configDirectory}/.config.json.new`,
      example: `${example}.new`,
      link: `${commands}/.modekeep.new`,
    },
  }
}

const LONGEST_CONFIG = 1 << 20

/** Below --root a link that is right in that system can lead to the same place of the one that runs this. */
export function stayBelowRoot(files: NodeFiles, places: Places): void {
  const { root, plugins, state, logFile, configDirectory, link } = places
  if (root === '') return
  for (const place of [plugins, state, dirname(logFile), configDirectory, dirname(link)]) {
    let existing = place
    while (existing !== '/' && !hasDirectory(files, existing)) existing = dirname(existing)
    if (`${files.realPath(existing)}/`.startsWith(`${root}/`)) continue
    const way = 'make the link or path in it relative, or run this in that system with chroot'
    throw new Refusal([`${place} leads out of ${root}`, way])
  }
}

/** @returns whether it is new: kubelet looks for the directory only at its start */
export function makePluginDirectory(job: Job, { plugins }: Places): boolean {
  const { files } = job.admin
  const isNew = !hasDirectory(files, plugins)
  if (isNew) {
    act(job, `create ${plugins} (0755)`, () => {
      try {
        files.makeDirectory(plugins, 0o755)
      } catch (error) {
        throw cannotWrite(plugins, `it does not exist and cannot be created (${(error as Error).message})`)
      }
    })
  }
  if (!job.command.isDry && !files.canWrite(plugins)) throw cannotWrite(plugins, 'it is read-only')
  return isNew
}

/** Who can write to the driver's directory runs programs as root; to the configuration's, mounts what no pod may have. */
export function warnAboutWriters({ admin, warn }: Job, { root }: Places, directory: string, what: string): void {
  if (!hasDirectory(admin.files, directory)) return
  for (const place of writers(admin, admin.files.realPath(directory), root).sort()) {
    warn(`${place} can be written by others than root: they could replace ${what}`)
  }
}

export function makePlaces(job: Job, places: Places): void {
  const { files } = job.admin
  const { root, state, stateDir, configText, configDirectory, example } = places
  make(job, state, 0o700)
  const { mode = 0o700 } = files.stat(state) ?? {}
  if ((mode & 0o7777) !== 0o700) act(job, `set the mode of ${state} to 0700`, () => files.chmod(state, 0o700))
  // Only the default prefix is ours to make; one that the configuration names is the operator's.
  if (!configText.includes('"allowedSources"')) {
    const above = dirname(VOLUMES_DIR)
    if (stateDir !== above) make(job, root + above, 0o700)
    make(job, root + VOLUMES_DIR, 0o755)
  }
  make(job, dirname(places.logFile), 0o750)
  make(job, configDirectory, 0o755)
  if (files.head(example, LONGEST_CONFIG)?.toString() === EXAMPLE) return
  act(job, `write ${example} (0644)`, () => {
    files.replace(example, EXAMPLE, 0o644)
    job.tell('written', example)
  })
}

function make(job: Job, path: string, mode: number): void {
  if (hasDirectory(job.admin.files, path)) return
  const text = `${path} (${mode.toString(8).padStart(4, '0')})`
  act(job, `create ${text}`, () => {
    job.admin.files.makeDirectory(path, mode)
    job.tell('created', text)
  })
}

/** The defaults, as driver/config.example.json has them. */
const EXAMPLE = `${JSON.stringify(DEFAULT_CONFIG, null, 2).replace(/\[[^\]]*\]/g, (list) =>
  list.replace(/\s+/g, ' ').replace('[ ', '[').replace(' ]', ']'),
)}\n`
