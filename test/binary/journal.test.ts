import { execFileSync, spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { expectSame, makeVolume, owned, type Snapshot, snapshot } from '../crash/volume.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../helpers/tree.ts'
import { acl, setAttributes } from '../real-mounts/attributes.ts'

const title = (name: string) => `${name}${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

function call(node: BinaryNode, args: readonly string[], before: readonly string[] = []) {
  const [program = BINARY, ...rest] = [...before, BINARY, ...args]
  const { stdout, stderr, status, error } = spawnSync(program, rest, {
    env: { PATH: process.env.PATH, MODEKEEP_CONFIG: `${node.top}/config.json` },
    maxBuffer: 1 << 30,
    timeout: 600_000,
  })
  if (error) throw error
  return { stdout, stderr: stderr.toString(), status }
}

/** A command that has to be done; its document. */
function document(node: BinaryNode, ...args: string[]): Record<string, unknown> {
  const { stdout, stderr, status } = call(node, [...args, '--json'])
  expect({ text: status === 0 ? '' : stdout.toString(), stderr, status }).toEqual({ text: '', stderr: '', status: 0 })
  return JSON.parse(stdout.toString())
}

function allow(node: BinaryNode, rule: object): void {
  const config = { stateDir: node.state, logFile: node.log, allow: [rule] }
  fs.writeFileSync(`${node.top}/config.json`, JSON.stringify(config))
}

function mountImage(image: string, directory: string): void {
  fs.mkdirSync(directory, { recursive: true })
  execFileSync('mount', ['-o', 'loop', image, directory])
}

/** Files with one ACL, which they have from their directory, and some of which each has another. */
function addAcls(source: string, shared: number, different: number): void {
  const aclOf = (user: number) => acl(`u::rwx,u:${user}:rw-,g::r-x,m::rwx,o::---`)
  makeTree(fs, source, [
    'dir acls 0750 7',
    ...Array.from({ length: different }, (_, at) => `file acls/own-${at} 0640 5`),
  ])
  setAttributes(source, { acls: { 'system.posix_acl_default': aclOf(500) } })
  for (let at = 0; at < shared; at++) fs.writeFileSync(`${source}/acls/shared-${at}`, '')
  const own = Array.from({ length: different }, (_, at) => [
    `acls/own-${at}`,
    { 'system.posix_acl_access': aclOf(1000 + at) },
  ])
  setAttributes(source, Object.fromEntries(own))
}

describe.skipIf(!isRoot)(title('disks that move to another node with their journal'), () => {
  function arranged(): { here: BinaryNode; there: BinaryNode; image: string; disk: string } {
    const [here, there] = [new BinaryNode(), new BinaryNode()]
    const image = `${here.top}/disk.img`
    execFileSync('truncate', ['-s', '64M', image])
    execFileSync(requireProgram('mkfs.ext4'), ['-q', '-F', image])
    return { here, there, image, disk: `${here.volumes}/disk` }
  }

  /** The image is the other node's alone from then on. */
  function move(image: string, there: BinaryNode): string {
    const moved = `${there.top}/moved.img`
    fs.renameSync(image, moved)
    return moved
  }

  it('a disk of a lost node with an imported journal is restored on the new node inode by inode: modes, set-id bits, groups, ACLs and capabilities', async () => {
    const { here, there, image, disk } = arranged()
    mountImage(image, disk)
    const source = `${disk}/data`
    makeVolume(source)
    addAcls(source, 300, 40)
    const original: Snapshot = snapshot(source)
    allow(here, { sources: [`${disk}/*`] })
    const options = JSON.stringify({ source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    expect(await here.call('mount', here.podDirectory('a'), options)).toEqual({ status: 'Success' })
    expect(await here.call('unmount', here.podDirectory('a'))).toEqual({ status: 'Success' })
    const whole = owned(original, source)
    expectSame(snapshot(source), whole)
    const file = `${here.top}/data.journal`
    const exported = document(here, 'journal', 'export', source, '--output', file)
    expect(exported).toMatchObject({ outcome: 'exported', source, recorded: { group: 2000, complete: true } })
    // Those of the volume, the shared one, and forty others.
    const [header = ''] = fs.readFileSync(file, 'latin1').split('\n', 1)
    expect(JSON.parse(header)).toMatchObject({ acls: 43 })
    execFileSync('umount', [disk])

    const other = `${there.volumes}/other-name`
    mountImage(move(image, there), other)
    const { volume } = exported as { volume: string }
    const nowhere = call(there, ['journal', 'import', file])
    expect(nowhere).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`volume ${volume}, which is not found`),
    })
    const wrong = call(there, ['journal', 'import', file, '--at', other])
    expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining(`and the file is of volume ${volume}`) })
    expect(fs.existsSync(`${there.state}/ownership`)).toBe(false)
    const at = `${other}/data`
    expect(document(there, 'journal', 'import', file, '--at', at)).toMatchObject({ outcome: 'imported', source: at })
    expectSame(snapshot(at), whole)
    expect(document(there, 'journal', 'import', file, '--at', at)).toMatchObject({ outcome: 'already here' })
    // What was imported goes on to be written: each ACL gets another one, and all of them come back.
    document(there, 'apply', at, '--fsgroup', '3000', '--group-access', 'grant')
    expect(snapshot(at)).not.toEqual(whole)
    expect(document(there, 'restore', volume)).toMatchObject({ outcome: 'restored', directory: at })
    expectSame(snapshot(at), original)
    expect(fs.existsSync(`${there.state}/ownership`)).toBe(false)
  })

  it('a disk of a lost node with an imported journal is restored by the last unmount on the new node if its pod requested restoreOnUnmount on the lost node', async () => {
    const { here, there, image, disk } = arranged()
    mountImage(image, disk)
    const original = makeVolume(`${disk}/data`)
    execFileSync('umount', [disk])
    const asked = { 'kubernetes.io/fsType': 'ext4', ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
    const mount = async (node: BinaryNode, source: string, more: object = {}) => {
      allow(node, { sources: [source], fsTypes: ['ext4'] })
      const options = JSON.stringify({ source, ...asked, ...more })
      expect(await node.call('mount', node.podDirectory('a'), options)).toEqual({ status: 'Success' })
    }
    await mount(here, image, { restoreOnUnmount: 'true' })
    const { stdout, stderr, status } = call(here, ['journal', 'export', here.podDirectory('a')])
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    const whole = snapshot(`${here.podDirectory('a')}/data`)
    // Its kubelet is gone, and unmounts nothing.
    execFileSync('umount', [here.podDirectory('a')])

    const file = `${there.top}/data.journal`
    fs.writeFileSync(file, stdout, { mode: 0o600 })
    const moved = move(image, there)
    mountImage(moved, `${there.top}/look`)
    expectSame(snapshot(`${there.top}/look/data`), whole)
    expect(document(there, 'journal', 'import', file)).toMatchObject({
      outcome: 'imported',
      source: `${there.top}/look`,
      recorded: { restorePending: true },
    })
    execFileSync('umount', [`${there.top}/look`])
    await mount(there, moved)
    expectSame(snapshot(`${there.podDirectory('a')}/data`), whole)
    expect(await there.call('unmount', there.podDirectory('a'))).toEqual({ status: 'Success' })
    mountImage(moved, `${there.top}/look`)
    expectSame(snapshot(`${there.top}/look/data`), original)
  })
})

describe.skipIf(!isRoot)(title('exports of journals'), () => {
  function walked(files = 0): { node: BinaryNode; source: string } {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    makeTree(fs, source, [...SIX_FILES, ...Array.from({ length: files }, (_, index) => `file f${index} 0640`)])
    expect(call(node, ['apply', source, '--fsgroup', '2000'])).toMatchObject({ status: 0 })
    return { node, source }
  }

  it('an exported journal has the same bytes in a pipe and in a file', () => {
    const { node, source } = walked(2000)
    const { stdout, stderr, status } = call(node, ['journal', 'export', source])
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
    document(node, 'journal', 'export', source, '--output', `${node.top}/x`)
    expect(stdout.equals(fs.readFileSync(`${node.top}/x`))).toBe(true)
    expect(stdout.length).toBeGreaterThan(100_000)
  })

  it('an exported journal is not written to a terminal', () => {
    const { node, source } = walked()
    const { stdout, status } = spawnSync('script', ['-qec', `${BINARY} journal export ${source}`, '/dev/null'], {
      env: { PATH: process.env.PATH, TERM: 'xterm', MODEKEEP_CONFIG: `${node.top}/config.json` },
      encoding: 'utf8',
      timeout: 600_000,
    })
    expect(stdout.trim()).toBe(
      'modekeep: stdout is a terminal: name a file, as in --output FILE, or write to a pipe [command]',
    )
    expect(status).toBe(1)
  })

  it('a journal export fails with a message and leaves no file if its reader ends or the disk is full', () => {
    const { node, source } = walked(3000)
    const shell = (command: string) =>
      call(node, ['journal', 'export', source], ['bash', '-c', `set -o pipefail; "$0" "$@" ${command}`])
    const full = 'modekeep: failed: cannot write to stdout (ENOSPC: no space left on device, write): free space'
    expect(shell('> /dev/full')).toMatchObject({ status: 1, stderr: expect.stringContaining(full) })
    const broken = 'modekeep: failed: cannot write to stdout (EPIPE: broken pipe, write)'
    expect(shell('| true')).toMatchObject({ status: 1, stderr: expect.stringContaining(broken) })
    const small = `${node.top}/small`
    fs.mkdirSync(small)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40k', 'small', small])
    const said = call(node, ['journal', 'export', source, '--output', `${small}/x`])
    expect(said).toMatchObject({ status: 1, stderr: expect.stringContaining(`cannot write ${small}/x (ENOSPC`) })
    expect(fs.readdirSync(small)).toEqual([])
  })

  it('an exported journal leaves nothing on the node if its import runs out of disk space', () => {
    const { node, source } = walked(3000)
    const file = `${node.top}/x`
    document(node, 'journal', 'export', source, '--output', file)
    const other = new BinaryNode()
    fs.mkdirSync(other.state)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=100k,mode=0700', 'state', other.state])
    expect(call(other, ['journal', 'import', file])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('journal'),
    })
    // The reserved bytes: all journals are measured again if they are too many.
    expect(fs.readdirSync(other.state)).toEqual(['growth'])
    execFileSync('mount', ['-o', 'remount,size=10m', other.state])
    expect(document(other, 'journal', 'import', file)).toMatchObject({ outcome: 'imported' })
  })

  it('an exported journal is complete at any moment of a running walk', async () => {
    const { node, source } = walked(3000)
    const env = { PATH: process.env.PATH, MODEKEEP_CONFIG: `${node.top}/config.json` }
    const seen = new Set<unknown>()
    for (let round = 0; round < 4; round++) {
      const args = ['apply', source, '--fsgroup', String(3000 + round), '--fs-group-change-policy', 'Always']
      const walk = spawn(BINARY, args, { env, stdio: 'ignore' })
      const ended = new Promise((done) => walk.on('close', done))
      let isOver = false
      void ended.then(() => {
        isOver = true
      })
      while (!isOver) {
        const file = `${node.top}/during`
        const { busy } = document(node, 'journal', 'export', source, '--output', file, '--force')
        seen.add(busy)
        const other = new BinaryNode()
        expect(document(other, 'journal', 'import', file, '--dry-run')).toMatchObject({ refusal: null })
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      expect(await ended).toBe(0)
    }
    expect(seen).toContain(true)
  })
})
