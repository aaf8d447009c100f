import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { BINARY, BinaryNode } from '../../helpers/kubelet-call.ts'

export const SUCCESS = { status: 'Success' }
export const GROUP = 2000

export function requireEnvironment(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set: run "npm run test:vm"`)
  return value
}

export interface TimedAnswer {
  status: string
  message: string
  seconds: number
}

/** A node whose pods mount volumes of servers. */
export class ServerNode extends BinaryNode {
  constructor(fsType: 'nfs' | 'cifs') {
    super()
    this.configure({
      helperTimeoutSeconds: 10,
      allow: [{ sources: ['10.9.0.2:/*', '//10.9.0.2/*'], fsTypes: [fsType], singleNode: true }],
    })
    this.#fsType = fsType
  }

  readonly #fsType: string

  mount(pod: string, options: Record<string, string>, group = GROUP): Promise<TimedAnswer> {
    const all = { 'kubernetes.io/fsType': this.#fsType, 'kubernetes.io/fsGroup': String(group), ...options }
    return this.#time('mount', this.podDirectory(pod), JSON.stringify(all))
  }

  unmount(pod: string): Promise<TimedAnswer> {
    return this.#time('unmount', this.podDirectory(pod))
  }

  async #time(...args: string[]): Promise<TimedAnswer> {
    const started = performance.now()
    const { status, message = '' } = await this.call(...args)
    const seconds = Math.round((performance.now() - started) / 100) / 10
    console.log(`${args[0]}: ${status} after ${seconds} s ${message}`)
    return { status, message, seconds }
  }

  /** Runs a command of an operator. */
  run(...args: string[]): { text: string; code: number } {
    const started = performance.now()
    try {
      const text = execFileSync('sh', ['-c', 'exec "$@" 2>&1', 'sh', BINARY, ...args], {
        encoding: 'utf8',
        env: { ...process.env, ...this.environment() },
      })
      return { text, code: 0 }
    } catch (error) {
      const { stdout, status } = error as { stdout: string; status: number }
      return { text: stdout, code: status }
    } finally {
      console.log(`${args.join(' ')}: ${Math.round((performance.now() - started) / 100) / 10} s`)
    }
  }
}

/** Lists "PID NAME" of processes that wait in the kernel and cannot be ended. */
export function listUninterruptible(): string[] {
  return fs.readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const [, name, state] = /^\d+ \((.*)\) (\S)/s.exec(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
      const isKernelThread = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8') === ''
      return state === 'D' && !isKernelThread ? [`${pid} ${name}`] : []
    } catch {
      return []
    }
  })
}

/** Lists group and mode of each inode of a tree by its path. */
export function listOwnership(directory: string): string[] {
  const paths = ['', ...(fs.readdirSync(directory, { recursive: true }) as string[]).map((name) => `/${name}`)]
  return paths.sort().map((path) => {
    const { gid, mode, uid } = fs.lstatSync(`${directory}${path}`)
    return `${path} ${uid}:${gid} ${mode.toString(8)}`
  })
}
