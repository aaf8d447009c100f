import type { Administration } from '../../host/administration.ts'
import { isDirectory } from '../../host/host.ts'
import type { NodeFiles } from '../../host/node-files.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { InstallCommand } from '../verbs/install.ts'
import type { UninstallCommand } from '../verbs/uninstall.ts'

/** One run of the installer. What it refuses is a Refusal: the first of its sentences is the fault, the rest what to do. */
export interface Job<Command = InstallCommand | UninstallCommand> {
  admin: Administration
  command: Command
  /** This program's own file; undefined where it runs from its sources. */
  executable: string | undefined
  /** A step that was taken, or with `would` one that would be. */
  tell(step: string, text: string): void
  warn(text: string): void
  /** Aborted by a signal, with what is then thrown. */
  stop: AbortSignal
}

/** A step: in a dry run only its text. */
export function act({ command, tell }: Job, text: string, work: () => void): void {
  if (command.isDry) tell('would', text)
  else work()
}

/** Lets a signal be heard, and ends what it interrupts. */
export async function turn({ stop }: Job): Promise<void> {
  await new Promise((done) => setImmediate(done))
  stop.throwIfAborted()
}

export function hasDirectory(files: NodeFiles, path: string): boolean {
  const stat = files.stat(path)
  return stat !== undefined && isDirectory(stat)
}

/** Shows something complete and synced under its name, or a file in the place of another. */
export function show(files: NodeFiles, from: string, to: string): void {
  if (hasDirectory(files, to)) throw new Refusal(`${to} is a directory: remove it, then run this again`)
  files.rename(from, to)
}

/** A name for what is staged, which kubelet passes over as it begins with a dot. */
export function stagedName(path: string): string {
  return `${path}.${Math.random().toString(36).slice(2, 8).padEnd(6, '0')}`
}
