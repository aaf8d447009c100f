import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { expectInTime } from '../helpers/busy-machine.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const skipReason = !isRoot
  ? 'mounts need root; run "sudo npm test"'
  : !fs.existsSync(BINARY)
    ? 'run "npm run build"'
    : ''

const FILES = 3000

/** A volume that two pods share; the second one's call is paused in the middle of its walk. */
class Shared {
  readonly node = new BinaryNode()
  readonly source = `${this.node.volumes}/data`
  readonly options = { source: this.source, 'kubernetes.io/fsGroup': '2000', ownership: 'walk' }

  constructor() {
    makeTree(
      fs,
      this.source,
      Array.from({ length: FILES }, (_, n) => `file d${n % 20}/f${n} 0640 5`),
    )
  }

  async walkingPeer() {
    const { node, source } = this
    expect(await node.call('mount', node.podDirectory('a'), JSON.stringify(this.options))).toEqual({
      status: 'Success',
    })
    const options = JSON.stringify({ ...this.options, fsGroupChangePolicy: 'Always' })
    const peer = node.start(['mount', node.podDirectory('b'), options])
    onTestFinished(() => void peer.child.kill('SIGKILL'))
    while (!this.isIncomplete()) await turn()
    // The process that kubelet started supervises the one that walks.
    for (const pid of this.family(peer.child.pid)) process.kill(pid, 'SIGSTOP')
    expect(this.isIncomplete()).toBe(true)
    expect(fs.readdirSync(source)).toHaveLength(20)
    return peer
  }

  /** Lists the process of a call, its children, and the worker that makes the call for them. */
  family(pid = 0): number[] {
    const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return [pid, ...children.map(Number), ...this.node.residentWorkers()]
  }

  isIncomplete(): boolean {
    const { state } = this.node
    return fs
      .readdirSync(`${state}/ownership`)
      .some((volume) => read(`${state}/ownership/${volume}/record.json`).includes('"complete":false'))
  }

  byHand(...args: string[]) {
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: `${this.node.top}/config.json` }
    return JSON.parse(execFileSync(BINARY, [...args, '--json'], { env, encoding: 'utf8', timeout: 60_000 }))
  }
}

function read(path: string): string {
  return fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : ''
}

describe.skipIf(skipReason !== '')(`a running call of a peer${skipReason && ` (skipped: ${skipReason})`}`, () => {
  it('leaves a healthy mount of the volume that it walks healthy, and heal does not replace it', async () => {
    const shared = new Shared()
    const peer = await shared.walkingPeer()
    const { node } = shared
    const stateOf = ({ mounts }: { mounts: { directory: string; state: string; reason: string }[] }) =>
      mounts.map(({ directory, state, reason }) => [directory.includes('/a/'), state, reason])
    const wanted = [
      [true, 'healthy', ''],
      [false, 'in progress', 'a call is at work on it'],
    ]
    const before = node.layers('a')
    expect(stateOf(shared.byHand('status'))).toEqual(wanted)
    const began = performance.now()
    expect(stateOf(shared.byHand('heal'))).toEqual(wanted)
    expectInTime(performance.now() - began, 4000)
    expect(node.layers('a')).toEqual(before)
    for (const pid of shared.family(peer.child.pid)) process.kill(pid, 'SIGCONT')
    await peer.ended
    expect(stateOf(shared.byHand('heal')).map(([, state]) => state)).toEqual(['healthy', 'healthy'])
    expect(node.layers('a')).toEqual(before)
  })
})
