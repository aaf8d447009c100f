import { isAbsolute, join } from 'node:path'
import { parseArgs } from 'node:util'
import { LONGEST_PATH } from '../grpc/socket.ts'
import { socketName } from './sockets.ts'

export interface Arguments {
  /** Where kubelet.sock is. */
  readonly directory: string
  readonly count: number
  readonly help: boolean
}

const DEFAULT_COUNT = 100
/** Their list is one message of gRPC, of 4 MB at most; this is well below, and more containers than a node runs. */
const MOST = 10_000
const PID_MAX = 2 ** 22

/** @param argv what follows the verb. @throws Error that says which argument is wrong, and the way out */
export function parseArguments(argv: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      devices: { type: 'string', default: String(DEFAULT_COUNT) },
      'kubelet-dir': { type: 'string', default: '/var/lib/kubelet' },
      // Its output is JSON in any case.
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const { devices, 'kubelet-dir': kubeletDir, help } = values
  const count = /^[0-9]{1,5}$/.test(devices) ? Number(devices) : 0
  if (count < 1 || count > MOST) throw new Error(`--devices ${quote(devices)}: give a number from 1 to ${MOST}`)
  if (!isAbsolute(kubeletDir)) throw new Error(`--kubelet-dir ${quote(kubeletDir)}: give an absolute path`)
  const directory = join(kubeletDir, 'device-plugins')
  if (Buffer.byteLength(join(directory, socketName(PID_MAX, Date.now()))) + 2 > LONGEST_PATH) {
    throw new Error(
      `--kubelet-dir ${quote(kubeletDir)}: too long for a socket in it, whose path has ${LONGEST_PATH} bytes`,
    )
  }
  return { directory, count, help }
}

function quote(value: string): string {
  return JSON.stringify(value).slice(0, 100)
}
