import { dirname } from 'node:path'
import { unlessRefused } from '../../host/file-error.ts'
import { parseMountinfo } from '../../mount-table/mountinfo.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { UninstallCommand } from '../verbs/uninstall.ts'
import { unlinkCommand } from './configuration.ts'
import { checkDriverDirectory } from './driver.ts'
import { act, hasDirectory, type Job, stagedName } from './job.ts'
import { DriverAside, discard, underLock } from './leftovers.ts'
import type { Places } from './places.ts'

const MOST_SHOWN = 5

/** Takes the driver away, and with --purge what it has made beside the pods' data. */
export async function uninstallFrom(job: Job<UninstallCommand>, places: Places): Promise<void> {
  const { files } = job.admin
  if (hasDirectory(files, places.plugins)) await underLock(job, places, () => removeAll(job, places))
  else removeAll(job, places)
}

function removeAll(job: Job<UninstallCommand>, places: Places): void {
  const {
    admin: { files },
    command,
    tell,
  } = job
  checkDriverDirectory(files, places)
  refuseWhileMounted(job, places, (problem) => job.warn(`${problem} going on because of --force`))
  if (hasDirectory(files, places.driverDirectory)) {
    act(job, `rename ${places.driverDirectory} to a dot name, then remove it`, () => removeDriver(job, places))
  } else tell('unchanged', `no driver in ${places.plugins}`)
  unlinkCommand(job, places)
  if (command.isPurging) {
    purge(job, places)
    return
  }
  for (const place of [places.state, dirname(places.logFile), places.configDirectory]) {
    if (files.stat(place)) tell('kept', place)
  }
  tell('note', 'to remove what was kept: install.sh --uninstall --purge')
}

/** Mount points of the system below --root that hold `part`, here and where the first process lives; undefined: unknown. */
function mountsWith({ admin: { files }, command }: Job, { root }: Places, part: string): string[] | undefined {
  const read = (pid: string) => unlessRefused(() => files.read(`${command.proc ?? '/proc'}/${pid}/mountinfo`))
  const own = read('self')
  if (own === undefined) return undefined
  const points = [own, read('1') ?? ''].map(mountPointsIn)
  if (!points.every((known) => known !== undefined)) return undefined
  return [...new Set(points.flat())].filter((point) => point.startsWith(`${root}/`) && point.includes(part)).sort()
}

/** Undefined where a line is not understood: --force is to help there too. */
function mountPointsIn(mountinfo: string): string[] | undefined {
  try {
    return parseMountinfo(mountinfo).map(({ mountPoint }) => mountPoint)
  } catch {
    return undefined
  }
}

/** @param goOn told what is wrong, where --force allows it */
function refuseWhileMounted(job: Job<UninstallCommand>, places: Places, goOn: (problem: string) => void): void {
  const { command } = job
  const mounted = mountsWith(job, places, '/volumes/modekeep~fs/')
  if (mounted?.length === 0) return
  const problem = mounted
    ? 'volumes of modekeep/fs are mounted:'
    : `cannot read the mount tables in ${command.proc ?? '/proc'}, so volumes of modekeep/fs may be mounted`
  if (command.isForced && !command.isPurging) {
    goOn(problem)
    return
  }
  throw new Refusal([
    problem,
    ...(mounted ?? []).slice(0, MOST_SHOWN),
    'without the driver the kubelet cannot unmount them and their pods hang in Terminating:',
    `drain the node first${command.isPurging ? '' : ', or use --force'}`,
  ])
}

function removeDriver(job: Job<UninstallCommand>, places: Places): void {
  const { files } = job.admin
  const { plugins, driverDirectory } = places
  const stage = stagedName(`${plugins}/.modekeep~fs`)
  const aside = `${stage}/gone`
  files.makeDirectory(stage, 0o700)
  files.rename(driverDirectory, aside)
  try {
    files.sync(plugins)
    // A call of kubelet's may have mounted since the last look; from here on none begins.
    refuseWhileMounted(job, places, () => {})
  } catch (error) {
    if (isPutBack(job, places, aside)) throw error
    job.warn(`cannot put the driver back: rename ${aside} to ${driverDirectory}`)
    throw new DriverAside(error instanceof Refusal ? error.faults : (error as Error).message, { cause: error })
  }
  discard(job, stage)
  job.tell('removed', driverDirectory)
}

/** A node with volumes keeps its driver. */
function isPutBack(job: Job, { plugins, driverDirectory }: Places, aside: string): boolean {
  const { files } = job.admin
  if (files.stat(driverDirectory)) return false
  return (
    unlessRefused(() => {
      files.rename(aside, driverDirectory)
      files.sync(plugins)
      return true
    }) === true
  )
}

function purge(job: Job<UninstallCommand>, places: Places): void {
  const {
    admin: { files },
    warn,
  } = job
  const { state, stateDir, logFile, configDirectory, config, example, aside } = places
  if (mountsWith(job, places, `${state}/`)?.length !== 0) {
    warn(`something is mounted below ${state}: kept`)
    return
  }
  if (/\/\.\.?\//.test(`${stateDir}/`)) warn(`${state} is not a plain path: kept`)
  else if (!stateDir.includes('modekeep')) warn(`${state} does not look like modekeep's alone: kept`)
  else act(job, `remove the state in ${state}`, () => purgeState(job, places))
  const logs = dirname(logFile)
  act(job, `remove ${logFile} and its older files`, () => {
    for (const name of files.list(logs).map((name) => `${logs}/${name}`)) {
      if (name === logFile || name.startsWith(`${logFile}.`)) files.remove(name)
    }
    if (logs.slice(places.root.length).includes('modekeep')) files.removeEmpty(logs)
    job.tell('purged', logFile)
  })
  act(job, `remove ${config} and config.example.json`, () => {
    for (const file of [config, example, aside.config, aside.example]) files.remove(file)
    files.removeEmpty(configDirectory)
    job.tell('purged', configDirectory)
  })
}

/** But what the configuration names, and the default source: that is the pods' data. */
function purgeState(job: Job, { root, state, volumesDir, configText }: Places): void {
  const { files } = job.admin
  for (const entry of files.list(state).map((name) => `${state}/${name}`)) {
    const isData = entry === root + volumesDir || configText.includes(`"${entry.slice(root.length)}`)
    if (!isData) files.removeTree(entry)
    else if (!files.removeEmpty(entry)) job.tell('kept', `${entry}: it holds data`)
  }
  for (const directory of [root + volumesDir, state, dirname(root + volumesDir)]) files.removeEmpty(directory)
  job.tell('purged', state)
}
