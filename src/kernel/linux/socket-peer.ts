import { statSync } from 'node:fs'
import { readTextFile } from '../read-file.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { CALL_DATA_OFFSET, callData, createSystemCall } from './kernel.ts'
import { withPidfd } from './processes.ts'

const getPeerCredentials = createSystemCall('peer_credentials')

/** struct ucred: a process, a user and a group, of 32 bits each. */
const UCRED_SIZE = 12
const UCRED_PID_OFFSET = 0
const UCRED_USER_OFFSET = 4
/** Offset of the structure's length, after the structure. */
const UCRED_LENGTH_OFFSET = 16

/** The process that connected to a unix socket. */
export interface SocketPeer {
  /** 0 for a process that this pid namespace does not have. */
  readonly pid: number
  /** Its uid at the time of the connection, as a uid of this user namespace. */
  readonly user: number
}

/** @param fd of the connection @returns undefined if the kernel does not report it */
export function readPeer(fd: number): SocketPeer | undefined {
  callData.writeUInt32LE(UCRED_SIZE, UCRED_LENGTH_OFFSET)
  if (
    getPeerCredentials(fd, 0, 0, CALL_DATA_OFFSET, CALL_DATA_OFFSET + UCRED_LENGTH_OFFSET) !== 0 ||
    callData.readUInt32LE(UCRED_LENGTH_OFFSET) !== UCRED_SIZE
  )
    return undefined
  return { pid: callData.readInt32LE(UCRED_PID_OFFSET), user: callData.readUInt32LE(UCRED_USER_OFFSET) }
}

/** Entries of /proc/PID that are equal for two processes of one executable on the same files. Those of namespaces never block. */
const SAME_PROGRAM_NAMES = ['ns/mnt', 'ns/user', 'root', 'exe'] as const

/** Fields of proc_pid_status(5) that tell what the kernel refuses a process of root. Two different filters may look the same. */
const RIGHTS_FIELDS = /^(?:CapEff|NoNewPrivs|Seccomp|Seccomp_filters):.*$/gm

/** Reads the rights of a process, with its label of a security module. */
function readProcessRights(pid: number | 'self'): string {
  const label = tolerateSystemErrors(() => readTextFile(`/proc/${pid}/attr/current`)) ?? ''
  return [...readTextFile(`/proc/${pid}/status`).matchAll(RIGHTS_FIELDS), label].join('\n')
}

/**
 * Returns whether a process runs this executable with the rights of this process, in its mount namespace, user namespace and root
 * directory.
 */
export function isSameProgram(pid: number): boolean {
  const identify = (process: number | 'self', name: string) => {
    const { dev, ino } = statSync(`/proc/${process}/${name}`, { bigint: true })
    return `${dev}:${ino}`
  }
  const isSame = (name: string) => tolerateSystemErrors(() => identify(pid, name) === identify('self', name)) === true
  const hasSameRights = () => tolerateSystemErrors(() => readProcessRights(pid) === readProcessRights('self')) === true
  return pid > 0 && withPidfd(pid, () => SAME_PROGRAM_NAMES.every(isSame) && hasSameRights()) === true
}
