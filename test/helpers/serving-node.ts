import { type ChildProcess, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { BINARY, NodeDirectory } from './node-directory.ts'

/** All but the last two digits, which are the pod's number. */
const UID = 'f7aea1c3-1111-2222-3333-4444555566'

/** A node with a kubelet's directory on which the built executable stays, and tells events. */
export class ServingNode extends NodeDirectory {
  readonly kubelet: string
  protected readonly children: ChildProcess[] = []
  stdout = ''

  constructor() {
    super()
    this.kubelet = `${this.top}/kubelet`
    fs.mkdirSync(this.kubelet)
  }

  get events(): { event: string; [fact: string]: unknown }[] {
    return this.stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }

  uid(pod: number): string {
    return `${UID}${String(pod).padStart(2, '0')}`
  }

  /** The one that was started last. */
  protected get served(): ChildProcess {
    const child = this.children.at(-1)
    if (child === undefined) throw new Error('none was started')
    return child
  }

  protected stay(args: readonly string[], executable = BINARY): ChildProcess {
    const child = spawn(executable, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { MODEKEEP_CONFIG: `${this.top}/config.json` },
    })
    this.children.push(child)
    child.stdout?.on('data', (data) => {
      this.stdout += data
    })
    return child
  }
}
