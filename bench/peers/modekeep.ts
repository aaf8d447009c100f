import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { type Cost, measured } from '../command.ts'
import type { Walk } from '../results.ts'
import { type Access, GROUP, UNTOUCHED } from '../tree.ts'
import { type Caller, mountOptions, type Walker } from './peer.ts'

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
    const config = {
      stateDir: `${top}/state`,
      logFile: `${top}/log/modekeep.log`,
      allow: [{ sources: [`${volumes}/*`] }],
    }
    fs.mkdirSync(top, { recursive: true })
    fs.writeFileSync(`${top}/config.json`, JSON.stringify(config))
  }

  /** A call as kubelet makes it. @throws {Error} unless the reply is Success */
  call(...args: string[]): Cost {
    const { cost, stdout } = measured(BINARY, args, { env: this.environment })
    const reply = JSON.parse(stdout)
    if (reply.status !== 'Success') throw new Error(`modekeep ${args[0]}: ${reply.message ?? stdout}`)
    return cost
  }

  /** A person's command. */
  command(...args: string[]): Cost {
    return measured(BINARY, args, { env: this.environment }).cost
  }

  mountCall(source: string, options: Record<string, string>): string[] {
    return ['mount', this.directory, mountOptions(source, { ownership: 'walk', ...options })]
  }

  mount(source: string, options: Record<string, string>): Cost {
    fs.mkdirSync(this.directory, { recursive: true, mode: 0o750 })
    return this.call(...this.mountCall(source, options))
  }

  unmount(): Cost {
    const cost = this.call('unmount', this.directory)
    fs.rmdirSync(this.directory)
    return cost
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

/**
 * Each walk is a new mount's: the whole call is measured, from the start of the process to its end.
 * @param does which of the walks it makes
 */
export function modekeepWalker(name: string, node: Node, groupAccess: 'keep' | 'grant', does: readonly Walk[]): Walker {
  const walk = (tree: string) => {
    const cost = node.mount(tree, { groupAccess, fsGroupChangePolicy: 'Always' })
    node.unmount()
    return cost
  }
  const walks: Required<Walker['walks']> = {
    survey: (tree) => node.command('plan', tree, '--fsgroup', `${GROUP}`, '--group-access', groupAccess),
    'first walk': walk,
    'nothing to do': walk,
    restore: (tree) => node.command('restore', tree),
  }
  return {
    name,
    access: ADDED[groupAccess],
    walks: Object.fromEntries(does.map((one) => [one, walks[one]])),
    isRecording: true,
    finish: () => node.forget(),
  }
}

/** Nothing on disk changes: what is shown is looked at through the mount. */
export function modekeepMapper(node: Node): Walker {
  const mount = (tree: string) => {
    const cost = node.mount(tree, { ownership: 'idmap' })
    const { gid } = fs.statSync(node.directory)
    node.unmount()
    if (gid !== GROUP) throw new Error(`${tree}: group ${gid} is shown instead of ${GROUP}`)
    return cost
  }
  return {
    name: 'modekeep idmap',
    access: UNTOUCHED,
    walks: { 'first walk': mount, 'nothing to do': mount },
    finish: () => node.forget(),
  }
}

export function modekeepCallers(node: Node): Caller[] {
  return [
    { name: 'modekeep init', call: () => node.call('init') },
    {
      name: 'modekeep, repeated mount',
      call: (tree) => node.mount(tree, {}),
      finish() {
        node.unmount()
        node.forget()
      },
    },
  ]
}
