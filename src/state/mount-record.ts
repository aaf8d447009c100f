import * as z from 'zod/mini'
import type { Host } from '../host/host.ts'
import type { MountRequest } from '../protocol/request.ts'
import { readRecord } from './json-record.ts'
import { mountStateDirectory, mountsDirectory, RECORD_FILE } from './paths.ts'

const FORMAT = 1

/** `preparing`: a call is, or was when it died, making the mount. `ready`: the mount with this id is finished. */
const schema = z.object({
  format: z.literal(FORMAT),
  phase: z.enum(['preparing', 'ready']),
  /** The boot the mount belongs to: mount ids mean nothing in another. */
  boot: z.string(),
  directory: z.string(),
  pod: z.string(),
  /** The request in a fixed form, to tell a repeated call from a changed one. */
  request: z.string(),
  source: z.string(),
  fsType: z.string(),
  /** The volume's identity, empty where the volume goes with its mount, and its device number, -1 then. */
  volume: z.string(),
  device: z.number(),
  /** The group a walk gives, -1 where there is none. */
  walkGroup: z.number(),
  /** Decimal, as it has 64 bits; empty while preparing. */
  mountId: z.string(),
})

/** What is known on disk about one mount directory; `unmount` gets no options, so this is all it has. */
export type MountRecord = z.infer<typeof schema>

export function newMountRecord(
  request: MountRequest,
  boot: string,
  source: { volume: string; device: number } | undefined,
): MountRecord {
  return {
    format: FORMAT,
    phase: 'preparing',
    boot,
    directory: request.directory,
    pod: request.pod,
    request: requestKey(request),
    source: request.source,
    fsType: request.fsType,
    volume: source?.volume ?? '',
    device: source?.device ?? -1,
    walkGroup: request.ownership === 'walk' && !request.readOnly ? (request.fsGroup ?? -1) : -1,
    mountId: '',
  }
}

/** Equal for requests that ask for the same mount. The order of mount options does not matter; the pod's name does not. */
export function requestKey(request: MountRequest): string {
  const { source, fsType, readOnly, fsGroup, ownership, groupAccess, changePolicy, restoreOnUnmount } = request
  const mountOptions = [...request.mountOptions].sort()
  return JSON.stringify({
    source,
    fsType,
    mountOptions,
    readOnly,
    fsGroup,
    ownership,
    groupAccess,
    changePolicy,
    restoreOnUnmount,
  })
}

/** Undefined when there is none or it cannot be understood: what is mounted is then nobody's. */
export function readMountRecord(host: Host, stateDir: string, directory: string): MountRecord | undefined {
  return readRecord(host, `${mountStateDirectory(stateDir, directory)}/${RECORD_FILE}`, schema)
}

export function writeMountRecord(host: Host, stateDir: string, record: MountRecord): void {
  const place = mountStateDirectory(stateDir, record.directory)
  host.files.makeDirectory(place)
  host.files.replace(`${place}/${RECORD_FILE}`, `${JSON.stringify(record)}\n`)
}

export function removeMountRecord(host: Host, stateDir: string, directory: string): void {
  host.files.remove(`${mountStateDirectory(stateDir, directory)}/${RECORD_FILE}`)
}

/** All records, of whatever phase and boot. */
export function listMountRecords(host: Host, stateDir: string): MountRecord[] {
  return below(host, mountsDirectory(stateDir))
}

function below(host: Host, place: string): MountRecord[] {
  return host.files.list(place).flatMap((name) => {
    if (name === RECORD_FILE) return readRecord(host, `${place}/${name}`, schema) ?? []
    return name.startsWith('%') || name.startsWith('+') ? below(host, `${place}/${name}`) : []
  })
}
