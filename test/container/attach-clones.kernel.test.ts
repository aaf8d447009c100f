import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { runGarbageCollection } from '../../src/cli/commands/gc.ts'
import { readContainerStatuses } from '../../src/cli/node-state/containers.ts'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import { reconcileContainers, releaseContainerClones, runContainerTask } from '../../src/container/container-task.ts'
import { createFault } from '../../src/errors/fault.ts'
import { containerRecords } from '../../src/state/container-record.ts'
import { listTree } from '../helpers/tree.ts'
import { as, cannotMount } from '../real-mounts/mapped-volume.ts'
import { CONTAINER, mountedBelow, nodeWith } from './node.ts'

const KINDS = ['ext4', 'xfs', 'btrfs', 'tmpfs'].map((fsType) => [fsType, cannotMount(fsType)] as const)
const skipped = cannotMount('tmpfs')

describe.each(KINDS)("a container's clone of a volume on %s%s", (fsType, why) => {
  it.skipIf(why !== '')(
    'shows the requested group to two containers at once, and stores the group on disk',
    async () => {
      const node = nodeWith(fsType)
      const before = listTree(fs, node.volume)
      const [red = ''] = await node.attach(node.order([node.clone()]))
      const [blue = ''] = await node.attach(node.order([node.clone({ group: 3000 })], { container: 'b1' }))
      expect([fs.statSync(red).gid, fs.statSync(blue).gid]).toEqual([2000, 3000])
      expect(listTree(fs, node.volume)).toEqual(before)
      expect(as({ group: 2000 }, `cat ${node.volume}/file`)).toMatch(/Permission denied/)
      // The node's users have no way in: a process of the container comes by a mount of its own.
      expect(as({ group: 2000 }, `cat ${red}/file`)).toMatch(/Permission denied/)
      const [mine, theirs] = [`${node.top}/red`, `${node.top}/blue`]
      for (const [clone, mount] of [
        [red, mine],
        [blue, theirs],
      ] as const) {
        fs.mkdirSync(mount)
        execFileSync('mount', ['--bind', clone, mount])
      }
      await releaseContainerClones(node.session, CONTAINER, 'started')
      expect(as({ group: 2000 }, `cat ${mine}/file && echo more > ${mine}/new && stat -c %g ${mine}/new`)).toBe(
        'text2000',
      )
      expect(as({ group: 3000 }, `cat ${theirs}/new && stat -c %g ${theirs}/new`)).toBe('more\n3000')
      expect(as({ group: 3000 }, `cat ${mine}/file`)).toMatch(/Permission denied/)
      expect(fs.statSync(`${node.volume}/new`).gid).toBe(500)
    },
  )
})

describe.skipIf(skipped !== '')(`a container's clones${skipped}`, () => {
  it('are readable by root alone, do not propagate, and are removed after the start', async () => {
    const node = nodeWith('tmpfs')
    execFileSync('mount', ['--make-rshared', '/'])
    const [clone = ''] = await node.attach(node.order([node.clone()]))
    const row = fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
    const rows = row.filter((line) => line.includes(` ${node.stagingMount}`))
    expect(rows.length).toBe(2)
    for (const line of rows) expect(line).not.toMatch(/shared:|master:/)
    expect(fs.statSync(node.stagingMount).mode & 0o777).toBe(0o700)
    expect(clone).toBe(`${node.stagingMount}/${CONTAINER}/0`)
    await releaseContainerClones(node.session, CONTAINER, 'started')
    expect(node.mounted()).toEqual([node.stagingMount])
    expect(node.records()).toEqual([`${CONTAINER}.json`])
    await releaseContainerClones(node.session, CONTAINER, 'gone')
    expect(node.records()).toEqual([])
    reconcileContainers(node.session)
    expect(node.mounted()).toEqual([])
    expect(fs.readdirSync(`${node.top}/state/nri`)).toEqual([])
  })

  it('are removed by gc after a reboot, and listed by a dry run', async () => {
    const node = nodeWith('tmpfs')
    await node.attach(node.order([node.clone()]))
    expect((await runGarbageCollection(node.session, { verb: 'gc', isDry: false, forget: undefined })).items).toEqual(
      [],
    )
    const record = `${node.top}/state/nri/${CONTAINER}.json`
    const { session } = node
    const written = containerRecords.read(session, CONTAINER)
    if (written === undefined) throw new Error('there is no record')
    containerRecords.write(session, { ...written, boot: 'an-earlier-boot' })
    const standing = node.mounted()
    const item = expect.objectContaining({ kind: 'container', name: CONTAINER, action: 'removed' })
    expect(await runGarbageCollection(node.session, { verb: 'gc', isDry: true, forget: undefined })).toMatchObject({
      items: [item],
    })
    expect(node.mounted()).toEqual(standing)
    expect(await runGarbageCollection(node.session, { verb: 'gc', isDry: false, forget: undefined })).toMatchObject({
      items: [item],
    })
    expect(node.mounted()).toEqual([])
    expect(fs.existsSync(record)).toBe(false)
  })

  it('keep the mount options read-only and nosuid, and show a file as a file', async () => {
    const node = nodeWith('tmpfs')
    execFileSync('mount', ['-o', 'remount,bind,nosuid,noexec', node.source])
    const file = `${node.pod}/volume-subpaths/data/app/0`
    fs.mkdirSync(`${node.pod}/volume-subpaths/data/app`, { recursive: true })
    fs.writeFileSync(file, '')
    fs.chownSync(`${node.volume}/file`, 0, 0)
    execFileSync('mount', ['--bind', `${node.source}/file`, file])
    const [whole = '', part = ''] = await node.attach(
      node.order([node.clone({ options: ['rbind', 'ro'] }), node.clone({ source: file, destination: '/file' })]),
    )
    const options = (path: string) => execFileSync('findmnt', ['-no', 'VFS-OPTIONS', path], { encoding: 'utf8' })
    expect(options(whole)).toMatch(/^ro,nosuid,noexec/)
    expect(fs.statSync(part).isFile()).toBe(true)
    // The volume's group is shown as the container's, for any group of the part.
    expect([fs.statSync(part).gid, fs.statSync(whole).gid]).toEqual([0, 2000])
  })

  it('are all removed if one volume cannot be mapped, with annotation, volume and remedy in the reason', async () => {
    const node = nodeWith('tmpfs')
    const overlay = `${node.pod}/volumes/kubernetes.io~csi/over/mount`
    for (const name of ['lower', 'upper', 'work']) fs.mkdirSync(`${node.top}/fs/${name}`)
    fs.mkdirSync(overlay, { recursive: true })
    const layers = `lowerdir=${node.top}/fs/lower,upperdir=${node.top}/fs/upper,workdir=${node.top}/fs/work`
    execFileSync('mount', ['-t', 'overlay', '-o', layers, 'test', overlay])
    const order = node.order([node.clone(), node.clone({ volume: 'over', destination: '/over', source: overlay })])
    await expect(node.attach(order)).rejects.toThrow(
      'annotation modekeep/group is "data=2000", but volume "over" (at "/over") cannot show its group as 2000: ' +
        "this node's kernel cannot mount overlay idmapped: leave the volume out of the annotation, " +
        'or write annotation modekeep/group-optional "true" to start without',
    )
    expect(node.records()).toEqual([])
    expect(mountedBelow(node.stagingMount)).toEqual([])
    const { mounts } = await attachContainerClones(node.session, { ...order, isOptional: true })
    expect(mounts).toMatchObject([{ do: 'replace' }, { do: 'without', why: expect.stringMatching(/overlay/) }])
  })

  it('a volume is mapped next to one that a rule refuses, which is neither opened nor mapped, if the group is optional', async () => {
    const node = nodeWith('tmpfs')
    const refusal = createFault('map-not-allowed', 'may not have it', 'add a rule')
    const share = node.clone({ volume: 'share', destination: '/share', source: `${node.source}/absent`, refusal })
    const request = node.order([node.clone(), share], { isOptional: true })
    const { mounts } = await attachContainerClones(node.session, request)
    expect(mounts).toMatchObject([{ do: 'replace' }, { do: 'without', why: 'may not have it: add a rule' }])
    expect(readContainerStatuses(node.session)).toMatchObject([
      { volume: 'data', state: 'created', group: 2000 },
      { volume: 'share', state: 'without', reason: 'may not have it: add a rule' },
    ])
    expect(await runContainerTask(node.session, { do: 'check', request })).toEqual({})
  })
})
