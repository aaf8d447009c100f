import * as fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import type { DoctorDocument } from '../../../src/cli/commands/doctor.ts'
import { addSkipReason } from '../../helpers/needs.ts'
import { mountPod, POD_GROUP, run, SUCCESS } from '../cases/node.ts'
import { LabelledNode, unmountDisksAfterEach } from './labelled-node.ts'
import { countLabels, readTreeState, type TreeState } from './labelled-tree.ts'
import { createContext, enforcePolicy, explainMissingSelinux, takeLoggedAccesses } from './selinux.ts'

const FS_TYPES = ['ext4', 'xfs'] as const
const RESTORE = { restoreOnUnmount: 'true' }
const missing = explainMissingSelinux()

unmountDisksAfterEach()

/** The groups of all inodes but the link, which no walk changes. */
const listGroups = ({ groups }: TreeState) => [
  ...new Set(Object.entries(groups).flatMap(([path, group]) => (path === 'd0/link' ? [] : [group]))),
]

describe.skipIf(missing !== '')(addSkipReason('a node that enforces the SELinux policy of Debian', missing), () => {
  beforeAll(enforcePolicy)

  it('doctor finds no fault in unconfined_t, and tries extended attributes', async () => {
    const node = new LabelledNode()
    const { text, code } = await node.start(['doctor', '--json']).ended
    const { findings }: DoctorDocument = JSON.parse(text)
    expect(findings.filter(({ level }) => level === 'fault')).toEqual([])
    expect(findings.map(({ text }) => text)).toContainEqual(expect.stringContaining('extended attributes'))
    expect(code).toBe(0)
  })

  it.each(FS_TYPES)(
    'on %s, a walk keeps the label and the capability of every inode, and the unmount restores every inode',
    async (fsType) => {
      const node = new LabelledNode()
      const tree = node.mountDisk(fsType)
      const before = readTreeState(tree)
      expect(countLabels(before)).toBeGreaterThan(10)
      await takeLoggedAccesses()
      for (const call of ['first', 'repeated'])
        expect([call, await mountPod(node, tree, 'walk', RESTORE)]).toEqual([call, SUCCESS])
      const walked = readTreeState(tree)
      expect(listGroups(walked)).toEqual([POD_GROUP])
      expect(walked.otherAttributes).toEqual(before.otherAttributes)
      expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
      expect(readTreeState(tree)).toEqual(before)
      // Among others, no change of a label.
      expect(await takeLoggedAccesses()).toEqual([])
    },
  )

  it.each(FS_TYPES)('on %s, heal mounts a missing volume again with the labels of every inode', async (fsType) => {
    const node = new LabelledNode()
    const tree = node.mountDisk(fsType)
    const before = readTreeState(tree)
    expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual(SUCCESS)
    run('umount', node.podDirectory('a'))
    const { text, code } = await node.start(['heal']).ended
    expect([code, text]).toEqual([0, expect.stringContaining('missing  mounted')])
    const healed = readTreeState(node.podDirectory('a'))
    expect([listGroups(healed), countLabels(healed)]).toEqual([[POD_GROUP], countLabels(before)])
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
    expect(readTreeState(tree)).toEqual(before)
  })

  it.each(FS_TYPES)('on %s, an idmapped mount shows the label of every inode and changes none', async (fsType) => {
    const node = new LabelledNode()
    const tree = node.mountDisk(fsType)
    const before = readTreeState(tree)
    expect(await mountPod(node, tree, 'idmap')).toEqual(SUCCESS)
    const shown = readTreeState(node.podDirectory('a'))
    expect([listGroups(shown), countLabels(shown)]).toEqual([[POD_GROUP], countLabels(before)])
    expect(readTreeState(tree)).toEqual(before)
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
    expect(readTreeState(tree)).toEqual(before)
  })

  it.each(FS_TYPES)('a walk of an image of %s and its restore keep the label of every inode', async (fsType) => {
    const node = new LabelledNode()
    const image = `${node.volumes}/volume.img`
    node.makeImage(image, fsType)
    const readImage = () => {
      const directory = fs.mkdtempSync(`${node.top}/image-`)
      run('mount', '-o', 'loop', image, directory)
      const state = readTreeState(`${directory}/sub`)
      run('umount', directory)
      return state
    }
    const nameOf = (state: TreeState) => state.otherAttributes.map((attribute) => attribute.replace(/^.*\/sub/, ''))
    const before = readImage()
    expect(await mountPod(node, image, 'walk', { ...RESTORE, 'kubernetes.io/fsType': fsType })).toEqual(SUCCESS)
    const walked = readTreeState(`${node.podDirectory('a')}/sub`)
    expect([listGroups(walked), nameOf(walked)]).toEqual([[POD_GROUP], nameOf(before)])
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
    const after = readImage()
    expect([nameOf(after), after.groups, after.modes]).toEqual([nameOf(before), before.groups, before.modes])
  })

  it('a volume on a disk that the node mounted with context= is walked and restored', async () => {
    const node = new LabelledNode()
    const tree = node.mountDisk('ext4', { options: [`context=${createContext('container_file_t')}`] })
    const before = readTreeState(tree)
    expect(countLabels(before)).toBe(1)
    expect(await mountPod(node, tree, 'walk', RESTORE)).toEqual(SUCCESS)
    expect(readTreeState(tree).otherAttributes).toEqual(before.otherAttributes)
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual(SUCCESS)
    expect(readTreeState(tree)).toEqual(before)
  })

  it.each(['context', 'fscontext', 'defcontext', 'rootcontext'])(
    'the mount option %s= is refused with the options that ext4 takes',
    async (option) => {
      const node = new LabelledNode()
      const image = `${node.volumes}/volume.img`
      node.makeImage(image, 'ext4')
      const mountOptions = `${option}=${createContext('container_file_t')}`
      const answer = await mountPod(node, image, 'walk', { mountOptions, 'kubernetes.io/fsType': 'ext4' })
      expect(answer).toEqual({
        status: 'Failure',
        message: expect.stringMatching(/^option "mountOptions" has .*context.*: ext4 takes /),
      })
    },
  )
})
