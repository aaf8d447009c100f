import { dirname } from 'node:path'
import { unlessRefused } from '../../host/file-error.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { InstallCommand } from '../verbs/install.ts'
import { requireProgram } from './executable.ts'
import { act, hasDirectory, type Job, show } from './job.ts'
import type { Places } from './places.ts'
import { askInit, type Verdict } from './trial.ts'

/** Makes --config the node's configuration, if the driver that is installed by now finds no fault in it. */
export async function installConfiguration(job: Job<InstallCommand>, places: Places): Promise<void> {
  const { files } = job.admin
  const { config: installed, driver, configDirectory } = places
  const { config } = job.command
  if (config === undefined) return
  if (job.command.isDry) {
    return job.tell('would', `rename a copy of ${config} to ${installed}, unless the driver finds a fault in it`)
  }
  requireProgram(files, driver, driver)
  const candidate = places.aside.config
  files.copy(config, candidate)
  files.secure(candidate, 0o644)
  files.sync(candidate)
  const verdict = await askInit(job, places, driver, candidate)
  const inForce = 'the configuration that was there, if any, is in force'
  const faults = faultsIn(verdict)
  if (faults !== '') throw new Refusal([`${config} is refused; ${inForce}`, faults])
  // Who cannot answer has not found that there is no fault.
  if (verdict.fault !== undefined) {
    throw new Refusal([`${config} was not tried; ${inForce}`, `init gave ${verdict.fault}`, verdict.shown])
  }
  if (!hasDirectory(files, installed) && files.stat(installed) && files.isSame(candidate, installed)) {
    files.remove(candidate)
    return job.tell('unchanged', `${installed} has these bytes already`)
  }
  show(files, candidate, installed)
  files.sync(configDirectory)
  job.tell('configured', installed)
}

/** `init` answers with the capabilities whatever the configuration is, and with its faults in the message. */
function faultsIn({ text }: Verdict): string {
  try {
    const { message } = JSON.parse(text)
    return typeof message === 'string' ? message : ''
  } catch {
    return ''
  }
}

/** A link to a modekeep driver, in whatever plugin directory. */
const isOurs = (target: string | undefined) => target?.endsWith('/modekeep~fs/fs') === true

/** Makes the driver the operator's command too, where the name is free. */
export function linkCommand(job: Job, { link, linkTarget, driver, aside }: Places): void {
  const { files } = job.admin
  const target = files.target(link)
  if (target === linkTarget) return
  if (files.stat(link, 'of a link itself') && !isOurs(target)) {
    job.warn(`${link} is not modekeep's: left alone, the operator's command is ${driver}`)
    return
  }
  act(job, `link ${link} -> ${linkTarget}`, () => {
    const isMade = unlessRefused(() => {
      files.makeDirectory(dirname(link), 0o755)
      files.link(linkTarget, aside.link)
      return true
    })
    if (!isMade) {
      return job.warn(`cannot write ${dirname(link)}: no link there, the operator's command is ${driver}`)
    }
    show(files, aside.link, link)
    job.tell('linked', `${link} -> ${linkTarget}`)
  })
}

export function unlinkCommand(job: Job, { link, linkTarget }: Places): void {
  const { files } = job.admin
  if (files.target(link) === linkTarget) {
    act(job, `remove the link ${link}`, () => {
      files.remove(link)
      job.tell('removed', link)
    })
  } else if (files.stat(link, 'of a link itself')) job.tell('kept', `${link}: it does not lead to this driver`)
}
