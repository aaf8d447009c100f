import { parseOptionsJson } from '../../config/json-options.ts'
import { mountRecords } from '../../state/mount-record.ts'
import type { Store } from '../../state/record-directories.ts'
import { bindKind } from '../../volume/bind.ts'
import { tmpfsKind } from '../../volume/tmpfs.ts'
import type { VolumeCall } from './volume-call.ts'

/** A call that the loader hands to the resident worker: driver/loader/resident.c. */
export interface ResidentCall {
  readonly umask: number
  /** Without the program's name. */
  readonly argv: readonly string[]
  /** Variables whose names begin with MODEKEEP_. */
  readonly env: Readonly<Record<string, string>>
}

/** Most bytes of a call; the loader makes a longer one itself. */
export const MAX_RESIDENT_CALL_BYTES = 65_536

/** @returns undefined for anything but a whole call */
export function parseResidentCall(bytes: Uint8Array): ResidentCall | undefined {
  const [umask = '', count = '', ...texts] = Buffer.from(bytes).toString().split('\0')
  if (!/^\d{1,3}$/.test(umask) || !/^\d$/.test(count) || texts.pop() !== '' || texts.length < Number(count))
    return undefined
  const variables = texts.slice(Number(count)).map((text) => [text.split('=', 1)[0] ?? '', text.replace(/^[^=]*=/, '')])
  return { umask: Number(umask), argv: texts.slice(0, Number(count)), env: Object.fromEntries(variables) }
}

/** Variables that the loader sets, and the one that only says where the worker is. */
const OWN_VARIABLES: ReadonlySet<string> = new Set(['MODEKEEP_KERNEL', 'MODEKEEP_SUPERVISED', 'MODEKEEP_SOCKET'])

/** Returns whether the caller's variables select the same configuration as this process's. */
export function hasSameVariables(caller: ResidentCall['env'], own: NodeJS.ProcessEnv): boolean {
  const select = (env: NodeJS.ProcessEnv) =>
    Object.entries(env).filter(([name]) => name.startsWith('MODEKEEP_') && !OWN_VARIABLES.has(name))
  const format = (env: NodeJS.ProcessEnv) => JSON.stringify(select(env).sort())
  return format(caller) === format(own)
}

/** Kinds of volumes for which no program and no daemon is started: they would have this process's control group. */
const KINDS_WITHOUT_PROGRAMS: ReadonlySet<string> = new Set([bindKind.name, tmpfsKind.name])

/** Returns whether the resident worker may make a call. Otherwise the process that kubelet started makes it. */
export function mayMakeResidentCall(call: VolumeCall, store: Store): boolean {
  const { record, problem } = mountRecords.find(store, call.directory)
  if (problem !== undefined) return false
  if (record !== undefined && !KINDS_WITHOUT_PROGRAMS.has(record.request.fsType)) return false
  return call.verb === 'unmount' ? record !== undefined : KINDS_WITHOUT_PROGRAMS.has(readRequestedKind(call.options))
}

/** @returns the kind of a mount's volume; '' if the options cannot be read */
function readRequestedKind(options: string): string {
  try {
    const { entries } = parseOptionsJson(options)
    return String(entries.find(([key]) => key === 'kubernetes.io/fsType')?.[1] || bindKind.name)
  } catch {
    return ''
  }
}
