import { basename, dirname } from 'node:path'
import { Refusal } from '../../errors/refusal.ts'
import type { NodeFiles, SourceFile } from '../../kernel/administration.ts'
import type { InstallCommand } from '../commands/install.ts'
import { createInstallRefusal, type InstallerRun, type InstallSite } from './site.ts'

const INIT_TIMEOUT_SECONDS = 30
const DRIVER_SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const MAX_SHOWN_REPLY_CHARACTERS = 300

/** Offset of the processor (e_machine) in an ELF header. */
const ELF_MACHINE_FIELD = { offset: 18, end: 20 }

/** The executable to install. */
export interface InstallExecutable {
  path: string
  /** Kept open, so that the compared bytes are the installed ones. */
  file: SourceFile
  /** The required SHA-256, or the computed one. */
  sum: string
  /** The option or file that requires the sum; undefined if none does. */
  by: string | undefined
}

/** @throws {Refusal} if there is no executable, or it has another sum than the required one */
export function findInstallExecutable({
  admin: { files },
  command,
  executable,
}: InstallerRun<InstallCommand>): InstallExecutable & Disposable {
  const { binary: path = executable, sha256 } = command
  if (path === undefined) {
    throw createInstallRefusal(['this runs from its sources: there is no executable', 'name one with --binary FILE'])
  }
  if (!files.head(path, 1)?.length) throw createInstallRefusal(`${path} is not a readable, non-empty file`)
  const file = files.open(path)
  try {
    const found = file.sum()
    const wanted = sha256 === undefined ? readReleaseSha256(files, path) : { sum: sha256, by: '--sha256' }
    const whole = { path, file, sum: wanted?.sum ?? found, by: wanted?.by }
    assertExecutableSum(whole, found)
    return { ...whole, [Symbol.dispose]: () => file[Symbol.dispose]() }
  } catch (error) {
    file[Symbol.dispose]()
    throw error
  }
}

/**
 * Reads the file of --config once, so that the tried bytes are the installed ones. Returns undefined without the option.
 * @throws {Refusal} if users other than root can write the file, before any step is taken
 */
export function findInstallConfiguration({
  admin: { files },
  command: { config },
}: InstallerRun<InstallCommand>): Buffer | undefined {
  if (config === undefined) return undefined
  try {
    const bytes = files.readOwned(config)
    if (bytes !== undefined) return bytes
  } catch (error) {
    if (error instanceof Refusal) throw createInstallRefusal(`--config: ${error.message}`, { cause: error })
    throw error
  }
  throw createInstallRefusal(`--config: ${config} is not a readable file`)
}

/** Reads the sum from a release's SHA256SUMS, in the format of sha256sum: the sum, a blank, a blank or a star, the name. */
function readReleaseSha256(files: NodeFiles, path: string): Pick<InstallExecutable, 'sum' | 'by'> | undefined {
  const sums = `${dirname(path)}/SHA256SUMS`
  const text = files.readForeign(sums)
  if (text === undefined) return undefined
  const name = basename(path)
  const line = text.split('\n').find((line) => /^[0-9a-fA-F]{64} [ *]/.test(line) && line.slice(66) === name)
  if (line !== undefined) return { sum: line.slice(0, 64).toLowerCase(), by: sums }
  const remedy = 'name the sum with --sha256 SUM, or take SHA256SUMS away if it is about other files'
  throw createInstallRefusal([`${sums} has no sum of ${name}`, remedy])
}

/** @param found the sum of the bytes that were read, or that were written to the staged copy */
export function assertExecutableSum(
  { path, sum, by }: Pick<InstallExecutable, 'path' | 'sum' | 'by'>,
  found: string,
): void {
  if (found === sum) return
  const fault =
    by === undefined
      ? `${path} was written to while it was copied: run this again`
      : `${path} is not the file that ${by} asks for: fetch it again`
  throw createInstallRefusal([fault, `expected ${sum}`, `found    ${found}`])
}

/**
 * Rejects a file that the kernel would not run, because execvp(3) would let a shell run its bytes as commands.
 * @param copy the file that is inspected; `path` is for messages
 * @throws {Refusal} if the file is neither a script nor an ELF file of this processor
 */
export function assertExecutableFormat(files: NodeFiles, path: string, copy: string): void {
  const head = files.head(copy, ELF_MACHINE_FIELD.end)?.toString('latin1') ?? ''
  if (head.startsWith('#!')) return
  if (!head.startsWith('\x7fELF'))
    throw createInstallRefusal(`${path} is no executable: it has neither an ELF header nor #!`)
  const own = files.head('/proc/self/exe', ELF_MACHINE_FIELD.end)?.toString('latin1').slice(ELF_MACHINE_FIELD.offset)
  if (own !== undefined && own !== head.slice(ELF_MACHINE_FIELD.offset)) {
    throw createInstallRefusal(`${path} is built for another processor than this one`)
  }
}

/**
 * Calls a driver's `init` with an environment of its own.
 * @param config path of the configuration to use instead of the node's
 * @returns the fault of the reply from kubelet's view, undefined for a success; the reply; the reply for messages
 */
export async function callDriverInit({ admin, stop }: InstallSite<InstallCommand>, driver: string, config?: string) {
  const { text, status, isLate } = await admin.tryDriver({
    command: [driver, 'init'],
    environment: { PATH: DRIVER_SEARCH_PATH, ...(config !== undefined && { MODEKEEP_CONFIG: config }) },
    seconds: INIT_TIMEOUT_SECONDS,
    stop,
  })
  stop.throwIfAborted()
  const answer = text.replace(/\n+$/, '')
  const fault = isLate ? `no answer within ${INIT_TIMEOUT_SECONDS} seconds` : findInitReplyFault(answer, status)
  const shown = answer.replace(/[^ -~]+/g, ' ').slice(0, MAX_SHOWN_REPLY_CHARACTERS)
  return { fault, text: answer, shown: `it said: ${shown || 'nothing'}` }
}

function findInitReplyFault(answer: string, status: number): string | undefined {
  if (status !== 0) return `exit status ${status}`
  if (answer.includes('\n')) return 'more than one line'
  if (!/^\{.*\}$/.test(answer)) return 'no JSON object'
  return /"status"\s*:\s*"Success"/.test(answer) ? undefined : 'no success'
}

/** @throws {Refusal} if a staged driver does not work on this node */
export async function assertInitSucceeds(
  site: InstallSite<InstallCommand>,
  { path }: InstallExecutable,
  staged: string,
): Promise<void> {
  const { files, root, plugins, aside } = site
  assertExecutableFormat(files, path, staged)
  // With --root the configuration of the running system does not apply, so init gets one with paths below the root.
  const config = root === '' ? undefined : aside.probe
  if (config !== undefined) {
    const places = { stateDir: `${root}/var/lib/modekeep`, logFile: `${root}/var/log/modekeep/modekeep.log` }
    files.replace(config, `${JSON.stringify(places)}\n`)
  }
  const { fault, text, shown } = await callDriverInit(site, staged, config)
  if (fault === undefined) return
  const remedy = /Permission denied|EACCES/.test(text)
    ? `is the file system of ${plugins} mounted noexec?`
    : 'the driver that was installed before, if any, is untouched'
  throw createInstallRefusal([`${path} does not work here: init gave ${fault}`, shown, remedy])
}
