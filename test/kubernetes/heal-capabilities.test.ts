import { execFileSync, spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { one, render } from './render.ts'

const FOLDER = resolve(import.meta.dirname, '../../driver/kubernetes')
const given = skipIfUnavailable((): string[] => {
  const { containers } = one(render(join(FOLDER, 'overlays/default')), 'DaemonSet').spec.template.spec
  return containers[0].securityContext.capabilities.add
})

/** What each is needed for: that is tried without it. */
const NEEDED = {
  SYS_ADMIN: 'enter',
  SYS_CHROOT: 'enter',
  SYS_PTRACE: 'enter',
  CHOWN: 'walk',
  DAC_READ_SEARCH: 'walk',
  FOWNER: 'walk',
  FSETID: 'walk',
  SETFCAP: 'walk',
  SETGID: 'idmap',
  SETUID: 'idmap',
} as const

const OTHER = 1000
const FILES = ['inner', 'inner/plain', 'inner/set-id', 'inner/capable']
const FACTS = {
  walk: ['2000 2700', '2000 755', '2000 6755', '2000 755'],
  idmap: ['2000 700', '2000 755', '2000 6755', '2000 755'],
}

/** A tree of another user's that root needs capabilities for. */
function makeVolume(path: string): void {
  const inner = `${path}/inner`
  fs.mkdirSync(inner, { recursive: true })
  for (const name of ['plain', 'set-id', 'capable']) fs.writeFileSync(`${inner}/${name}`, name)
  for (const name of ['.', 'inner', ...FILES]) fs.chownSync(`${path}/${name}`, OTHER, OTHER)
  for (const name of ['plain', 'capable']) fs.chmodSync(`${inner}/${name}`, 0o755)
  fs.chmodSync(`${inner}/set-id`, 0o6755)
  execFileSync(requireProgram('setcap'), ['cap_net_raw+ep', `${inner}/capable`])
  fs.chmodSync(inner, 0o700)
}

const withAlone = (capabilities: readonly string[]) => [
  'setpriv',
  `--bounding-set=${['-all', ...capabilities.map((name) => `+${name.toLowerCase()}`)].join(',')}`,
  '--inh-caps=-all',
  '--',
]

/** Whether heal repairs a mount whose source was replaced, with its group on all that is there and nothing lost. */
async function repairs(ownership: 'walk' | 'idmap', capabilities: readonly string[]): Promise<boolean> {
  const node = new BinaryNode()
  const source = `${node.volumes}/data`
  fs.mkdirSync(source)
  const directory = node.podDirectory('a')
  const options = { source, ownership, 'kubernetes.io/mounterArgs.FsGroup': '2000' }
  expect(await node.call('mount', directory, JSON.stringify(options))).toEqual({ status: 'Success' })
  fs.renameSync(source, `${source}-old`)
  makeVolume(source)
  node.wrapper = withAlone(capabilities)
  const { code } = await node.start(['heal', '--json']).ended
  if (code !== 0 || !fs.existsSync(`${directory}/inner`)) return false
  const facts = FILES.map((name) => {
    const { gid, mode } = fs.statSync(`${directory}/${name}`)
    return `${gid} ${(mode & 0o7777).toString(8)}`
  })
  const capable = execFileSync(requireProgram('getcap'), [`${source}/inner/capable`], { encoding: 'utf8' })
  return String(facts) === String(FACTS[ownership]) && capable.includes('cap_net_raw')
}

/** Whether the mount namespace of a process with every capability can be entered. */
function enters(capabilities: readonly string[]): boolean {
  const other = spawn('unshare', ['--mount', 'sleep', '60'], { stdio: 'ignore' })
  onTestFinished(() => {
    other.kill('SIGKILL')
  })
  const namespace = () => fs.readlinkSync(`/proc/${other.pid}/ns/mnt`)
  while (namespace() === fs.readlinkSync('/proc/self/ns/mnt')) spawnSync('sleep', ['0.01'])
  const enter = ['nsenter', '--target', String(other.pid), '--mount', 'readlink', '/proc/self/ns/mnt']
  const [program = '', ...args] = [...withAlone(capabilities), ...enter]
  return spawnSync(program, args, { encoding: 'utf8' }).stdout.trim() === namespace()
}

const tried = (what: 'enter' | 'walk' | 'idmap', capabilities: readonly string[]) =>
  what === 'enter' ? enters(capabilities) : repairs(what, capabilities)

describe.skipIf(!isRoot)(`the capabilities of heal's container${isRoot ? '' : ' (skipped: needs root)'}`, () => {
  it("the capabilities of heal's container equal those that this test uses", () =>
    expect(given().toSorted()).toEqual(Object.keys(NEEDED).toSorted()))

  it.each(['enter', 'walk', 'idmap'] as const)(
    "the capabilities of heal's container are sufficient: %s",
    async (what) => {
      expect(await tried(what, given())).toBe(true)
    },
  )

  it.each(Object.entries(NEEDED))("heal's container needs the capability %s to %s", async (name, what) => {
    const others = given().filter((other) => other !== name)
    expect(await tried(what, others)).toBe(false)
  })
})
