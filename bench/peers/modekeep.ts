import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { run } from '../../scripts/fetch/command.ts'
import { timed } from '../command.ts'
import { type Access, GROUP, OLD_GROUP } from '../tree.ts'
import { type Driver, mountOptions, type Walker } from './peer.ts'

export const BINARY = resolve(import.meta.dirname, '../../dist/modekeep')

/** The built driver on a node directory of its own; sources below `volumes` are allowed. */
export class Node {
  readonly #top: string
  readonly directory: string
  readonly environment: Record<string, string>

  constructor(top: string, volumes: string) {
    this.#top = top
    this.directory = `${top}/pods/8c03a5bc/volumes/modekeep~fs/v`
    this.environment = { MODEKEEP_CONFIG: `${top}/config.json` }
    const config = { stateDir: `${top}/state`, logFile: `${top}/log/modekeep.log`, allowedSources: [volumes] }
    fs.mkdirSync(top, { recursive: true })
    fs.writeFileSync(`${top}/config.json`, JSON.stringify(config))
  }

  /** @throws {Error} unless the reply is Success */
  call(...args: string[]): void {
    const text = run(BINARY, args, { env: this.environment })
    const reply = JSON.parse(text)
    if (reply.status !== 'Success') throw new Error(`modekeep ${args[0]}: ${reply.message ?? text}`)
  }

  mountCall(source: string, options: Record<string, string>): string[] {
    return ['mount', this.directory, mountOptions(source, { ownership: 'walk', ...options })]
  }

  mount(source: string, options: Record<string, string>): number {
    fs.mkdirSync(this.directory, { recursive: true, mode: 0o750 })
    const call = this.mountCall(source, options)
    return timed(() => this.call(...call))
  }

  unmount(): number {
    const time = timed(() => this.call('unmount', this.directory))
    fs.rmdirSync(this.directory)
    return time
  }

  /** Forgets every volume: the next walk is a first one. */
  forget(): void {
    fs.rmSync(`${this.#top}/state`, { recursive: true, force: true })
  }
}

const ADDED: Record<'keep' | 'grant', Access> = {
  keep: { group: GROUP, file: 0, directory: 0o2000 },
  grant: { group: GROUP, file: 0o660, directory: 0o2770 },
}

/** Each walk is a new mount's: the whole call is timed, from the start of the process to its end. */
export function modekeepWalker(node: Node, groupAccess: 'keep' | 'grant'): Walker {
  return {
    name: `modekeep ${groupAccess}`,
    access: ADDED[groupAccess],
    walk(tree) {
      const time = node.mount(tree, { groupAccess, fsGroupChangePolicy: 'Always' })
      node.unmount()
      return time
    },
    finish: () => node.forget(),
  }
}

/** Nothing on disk changes: what is shown is looked at through the mount. */
export function modekeepMapper(node: Node): Walker {
  return {
    name: 'modekeep idmap',
    access: { group: OLD_GROUP, file: 0, directory: 0 },
    walk(tree) {
      const time = node.mount(tree, { ownership: 'idmap' })
      const { gid } = fs.statSync(node.directory)
      node.unmount()
      if (gid !== GROUP) throw new Error(`${tree}: group ${gid} is shown instead of ${GROUP}`)
      return time
    },
    finish: () => node.forget(),
  }
}

export function modekeepDriver(node: Node): Driver {
  return {
    name: 'modekeep',
    mount: (tree) => node.mount(tree, {}),
    unmount() {
      node.unmount()
      node.forget()
    },
  }
}
