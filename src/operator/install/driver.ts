import { DIRECTORY, REGULAR } from '../../host/host.ts'
import type { NodeFiles } from '../../host/node-files.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { InstallCommand } from '../verbs/install.ts'
import { type Executable, hasItsBytes, requireSum } from './executable.ts'
import { hasDirectory, type Job, show, stagedName, turn } from './job.ts'
import type { Places } from './places.ts'
import { requireInit } from './trial.ts'

/** @throws {Refusal} for what lies where the driver's directory is to be */
export function checkDriverDirectory(files: NodeFiles, { driverDirectory }: Places): void {
  if (files.target(driverDirectory) !== undefined) {
    throw new Refusal(`${driverDirectory} is a symbolic link, which the kubelet skips: remove it first`)
  }
  if (files.stat(driverDirectory) && !hasDirectory(files, driverDirectory)) {
    throw new Refusal(`${driverDirectory} is not a directory: remove it first`)
  }
}

/**
 * Kubelet watches its plugin directory and calls `init` upon every event on a name without a dot in front. So the driver comes,
 * or changes, by one rename of something complete and synced under a dot name, and nothing else is ever written there.
 */
export async function installDriver(job: Job<InstallCommand>, places: Places, executable: Executable): Promise<void> {
  const { files } = job.admin
  const { plugins, driverDirectory, driver } = places
  checkDriverDirectory(files, places)
  const isThere = hasDirectory(files, driverDirectory)
  if (isInstalled(files, places, executable)) return job.tell('unchanged', `${driver} has these bytes already`)
  if (!job.command.isDry) return isThere ? upgrade(job, places, executable) : firstInstall(job, places, executable)
  const staged = isThere ? `${driverDirectory}/.fs.XXXXXX` : `${plugins}/.modekeep~fs.XXXXXX`
  const copy = isThere ? staged : `${staged}/fs`
  job.tell('would', `copy ${executable.path} to ${copy} (0755), sync it`)
  job.tell('would', 'run its init and go on only if it answers Success')
  job.tell('would', `rename ${staged} to ${isThere ? driver : driverDirectory}`)
}

function isInstalled(files: NodeFiles, { driver, driverDirectory }: Places, executable: Executable): boolean {
  const isOurs = (path: string, type: number) => {
    const stat = files.stat(path, 'of a link itself')
    return stat?.mode === (type | 0o755) && stat.uid === 0 && stat.gid === 0
  }
  // The bytes last: most nodes tell by the rest.
  return isOurs(driverDirectory, DIRECTORY) && isOurs(driver, REGULAR) && hasItsBytes(files, executable, driver)
}

async function firstInstall(job: Job<InstallCommand>, places: Places, executable: Executable): Promise<void> {
  const { files } = job.admin
  const { plugins, driverDirectory, driver } = places
  const stage = stagedName(`${plugins}/.modekeep~fs`)
  files.makeDirectory(stage, 0o700)
  await stageDriver(job, places, executable, `${stage}/fs`)
  files.secure(stage, 0o755)
  files.sync(stage)
  if (files.stat(driverDirectory)) throw new Refusal(`${driverDirectory} appeared meanwhile, run this again`)
  files.rename(stage, driverDirectory)
  files.sync(plugins)
  job.tell('installed', driver)
}

async function upgrade(job: Job<InstallCommand>, places: Places, executable: Executable): Promise<void> {
  const { files } = job.admin
  const { driverDirectory, driver } = places
  const stat = files.stat(driverDirectory)
  // First, as who may write to it could replace what is staged there between its check and its use.
  if (stat?.mode !== (DIRECTORY | 0o755) || stat.uid !== 0 || stat.gid !== 0) files.secure(driverDirectory, 0o755)
  const stage = stagedName(`${driverDirectory}/.fs`)
  await stageDriver(job, places, executable, stage)
  const isThere = files.stat(driver) !== undefined
  show(files, stage, driver)
  files.sync(driverDirectory)
  job.tell(isThere ? 'upgraded' : 'installed', driver)
}

/** Complete, synced and tried before a rename shows it. */
async function stageDriver(
  job: Job<InstallCommand>,
  places: Places,
  executable: Executable,
  staged: string,
): Promise<void> {
  const { files } = job.admin
  await turn(job)
  files.copy(executable.path, staged)
  requireSum(files, executable, staged)
  files.secure(staged, 0o755)
  files.sync(staged)
  await requireInit(job, places, executable, staged)
}
