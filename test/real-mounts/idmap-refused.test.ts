import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { UnmappableVolume } from '../../src/fsgroup/map-group.ts'
import { createGroupSwapMap } from '../../src/kernel/id-map.ts'
import { openUserNamespace } from '../../src/kernel/linux/mounts.ts'
import { compile } from '../race/compile.ts'
import { cannotRun, mountMapped, mountNew, scratch, withMapped } from './mapped-volume.ts'

const skipReason = cannotRun('')
const noFuse = cannotRun('bindfs')
const WAY_OUT = /write ownership "auto"/

/** What a pod's author reads. */
function refusal(source: string): string {
  try {
    withMapped(source, fs.statSync(source).gid, 2000)
  } catch (error) {
    expect(error).toBeInstanceOf(UnmappableVolume)
    expect((error as Error).message).toMatch(WAY_OUT)
    return (error as Error).message
  }
  throw new Error(`${source} was mapped`)
}

/** The same from a process in circumstances of its own. */
function refusalUnder(command: readonly string[], source: string): string {
  const program = `${import.meta.dirname}/map-once.ts`
  const [name = '', ...args] = [...command, process.execPath, program, source]
  return execFileSync(name, args, { encoding: 'utf8' })
}

describe.skipIf(skipReason !== '')(`an idmapped mount is refused${skipReason}`, () => {
  it('on overlayfs, which the message names', () => {
    const top = scratch()
    const point = mountNew(top, 'tmpfs')
    for (const name of ['lower', 'upper', 'work', 'merged']) fs.mkdirSync(`${point}/${name}`)
    const layers = `lowerdir=${point}/lower,upperdir=${point}/upper,workdir=${point}/work`
    execFileSync('mount', ['-t', 'overlay', '-o', layers, 'test', `${point}/merged`])
    expect(refusal(`${point}/merged`)).toMatch(/this node's kernel cannot mount overlay idmapped;/)
  })

  it('on proc, which the message names', () => {
    expect(refusal('/proc')).toMatch(/cannot mount proc idmapped;/)
  })

  it('of an idmapped mount', () => {
    const top = scratch()
    mountMapped(mountNew(top, 'tmpfs'), `${top}/pod`, 0, 1234)
    expect(refusal(`${top}/pod`)).toMatch(/its source is an idmapped mount already/)
  })

  it("of another user namespace's file system, whose root would show as the node's root", () => {
    const top = scratch()
    fs.mkdirSync(`${top}/theirs`)
    execFileSync(compile('real-mounts/foreign-file-system.c'), [`${top}/theirs`])
    expect(fs.statSync(`${top}/theirs`)).toMatchObject({ uid: 100_000, gid: 100_000 })
    expect(refusal(`${top}/theirs`)).toMatch(/its file system belongs to another user namespace/)
  })

  it('if user namespaces are disabled', () => {
    const top = scratch()
    // The limit of a user namespace of the test alone.
    const off = 'echo 0 > /proc/sys/user/max_user_namespaces && exec unshare --mount "$@"'
    const command = ['unshare', '--user', '--map-root-user', 'sh', '-c', off, 'sh']
    expect(refusalUnder(command, top)).toMatch(/allows no further user namespaces.*user\.max_user_namespaces is 0/)
  })

  it('if modekeep runs in a user namespace with few ids', () => {
    const command = ['unshare', '--user', '--map-root-user', '--mount']
    expect(refusalUnder(command, scratch())).toMatch(/modekeep itself runs in a user namespace on this node/)
  })

  it('if modekeep runs in a user namespace with all ids', () => {
    const command = [...inNamespaceOfAllIds(), 'unshare', '--mount']
    expect(refusalUnder(command, scratch())).toMatch(/modekeep itself runs in a user namespace on this node/)
  })
})

describe.skipIf(noFuse !== '')(`an idmapped mount of a FUSE file system${noFuse}`, () => {
  it('is refused if the daemon does not request it, and the message names the file system', () => {
    const top = scratch()
    fs.mkdirSync(`${top}/fuse`)
    execFileSync('bindfs', ['-o', 'subtype=bindfs', mountNew(top, 'tmpfs'), `${top}/fuse`])
    expect(refusal(`${top}/fuse`)).toMatch(/cannot mount fuse\.bindfs idmapped: its daemon must ask for it/)
  })
})

describe.skipIf(skipReason !== '')(`an idmapped mount leaves${skipReason}`, () => {
  it('no process and no open file descriptor behind', () => {
    const top = scratch()
    const volume = mountNew(top, 'tmpfs')
    withMapped(volume, 0, 2000)
    const open = fs.readdirSync('/proc/self/fd').length
    for (let times = 0; times < 50; times++) withMapped(volume, 0, 2000)
    for (let times = 0; times < 50; times++) refusal('/proc')
    expect(fs.readdirSync('/proc/self/fd').length).toBe(open)
    expect(children()).toEqual([])
  })

  it('no user namespace behind: with a limit of two namespaces, forty mounts can be made in turn', () => {
    const limited = 'echo 2 > /proc/sys/user/max_user_namespaces && exec "$@"'
    const program = `${import.meta.dirname}/namespaces-in-turn.ts`
    const [nsenter = '', ...enter] = inNamespaceOfAllIds()
    const node = [process.execPath, program, '40']
    const made = execFileSync(nsenter, [...enter, 'sh', '-c', limited, 'sh', ...node], { encoding: 'utf8' })
    expect(made).toBe('40 made\n')
  })
})

/** unshare(1) cannot map all. */
function inNamespaceOfAllIds(): string[] {
  const namespace = openUserNamespace(createGroupSwapMap(1, 2))
  onTestFinished(() => fs.closeSync(namespace))
  return ['nsenter', `--user=/proc/${process.pid}/fd/${namespace}`]
}

/** Of this process, zombies included. */
function children(): string[] {
  const stats = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return stats.flatMap((pid) => {
    const text = fs.existsSync(`/proc/${pid}/stat`) ? statOf(pid) : ''
    return / \S (\d+) /.exec(text.slice(text.lastIndexOf(')') + 1))?.[1] === String(process.pid) ? [text] : []
  })
}

function statOf(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    // It has ended meanwhile.
    return ''
  }
}
