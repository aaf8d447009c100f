import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotMount } from '../binary/modekeep.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { expectGolden, normalize } from './golden.ts'

const WALK = { ownership: 'walk', 'kubernetes.io/mounterArgs.FsGroup': '2000', restoreOnUnmount: 'true' }
const POD = { 'kubernetes.io/pod.name': 'web-0', 'kubernetes.io/pod.namespace': 'shop' }

/** A node on which each command and its output is recorded. */
class Session {
  readonly node = new BinaryNode()
  #text = ''

  get text(): string {
    return normalize(this.#text, { node: this.node.top })
  }

  async run(...args: string[]): Promise<void> {
    const { text, code } = await this.node.start(args).ended
    this.#text += `$ modekeep ${args.join(' ')}\n${text}${code === 0 ? '' : `exit status ${code}\n`}\n`
  }

  mount(pod: string, options: object): Promise<void> {
    return this.run('mount', this.node.podDirectory(pod), JSON.stringify({ ...POD, ...options }))
  }

  source(name: string): string {
    const source = `${this.node.volumes}/${name}`
    fs.mkdirSync(source, { mode: 0o755 })
    fs.writeFileSync(`${source}/file`, '', { mode: 0o640 })
    fs.symlinkSync('file', `${source}/link`)
    return source
  }
}

/** Exchanges two directories by their names. What the first contains stays below its name. */
function exchange(one: string, other: string): void {
  fs.renameSync(one, `${one}-moving`)
  fs.renameSync(other, one)
  fs.renameSync(`${one}-moving`, other)
  for (const name of fs.readdirSync(other)) fs.renameSync(`${other}/${name}`, `${one}/${name}`)
}

describe.skipIf(cannotMount !== '')(`the golden file${cannotMount}`, () => {
  it('flexvolume.txt has the replies to kubelet', async () => {
    const session = new Session()
    const source = session.source('data')
    await session.run('init')
    await session.mount('a', { source, ...WALK })
    await session.mount('a', { source, ...WALK })
    await session.mount('b', { source: '/etc' })
    await session.mount('b', { source: 'relative' })
    await session.mount('b', { source: `${source}/missing` })
    await session.mount('b', { source, ownership: 'all' })
    await session.mount('b', { source, unknown: 'yes' })
    await session.mount('b', { source, ...WALK, 'kubernetes.io/mounterArgs.FsGroup': '3000' })
    await session.mount('b', { source, subPath: '../up' })
    await session.mount('b', { source, mountOptions: 'suid' })
    await session.mount('b', { 'kubernetes.io/fsType': 'floppy', source })
    await session.mount('b', { 'kubernetes.io/fsType': 'tmpfs', size: 'large' })
    await session.run('mount', session.node.podDirectory('b'), '{')
    await session.run('mount', 'relative', '{}')
    await session.run('unmount', session.node.podDirectory('a'))
    await session.run('unmount', session.node.podDirectory('a'))
    await session.run('attach', '{}', 'node')
    expectGolden('flexvolume.txt', session.text)
  })

  it('operator.txt has what the verbs print about a node, as text and as JSON', async () => {
    const session = new Session()
    const [source, other] = [session.source('data'), session.source('other')]
    const replacement = `${source}-new`
    fs.mkdirSync(replacement)
    // Volumes are listed in the order of their ids, which contain the inode numbers in hexadecimal digits.
    const inodeDigits = (path: string) => fs.statSync(path).ino.toString(16)
    if (inodeDigits(replacement) < inodeDigits(source)) exchange(source, replacement)
    for (const format of [[], ['--json']]) await session.run('status', ...format)
    await session.mount('a', { source, ...WALK })
    await session.mount('b', { 'kubernetes.io/fsType': 'tmpfs' })
    fs.renameSync(source, `${source}-old`)
    fs.renameSync(replacement, source)
    for (const format of [[], ['--json']]) {
      await session.run('plan', other, '--fsgroup', '2000', ...format)
      await session.run('apply', other, '--fsgroup', '2000', ...format)
      await session.run('restore', other, '--dry-run', ...format)
      await session.run('restore', other, ...format)
      await session.run('restore', other, ...format)
      await session.run('status', ...format)
      await session.run('status', session.node.podDirectory('b'), ...format)
      await session.run('heal', ...format)
      await session.run('gc', ...format)
      await session.run('restore', `${session.node.volumes}/none`, ...format)
    }
    await session.run('status', '--prometheus')
    expectGolden('operator.txt', session.text)
    const log = fs.readFileSync(session.node.log, 'utf8')
    expectGolden('log.txt', normalize(log, { node: session.node.top }))
    expect(log).not.toBe('')
  })
})
