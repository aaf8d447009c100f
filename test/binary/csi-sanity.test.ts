import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { quoteValue } from '../../src/errors/refusal.ts'
import { call } from '../frontends/csi/kubelet.ts'
import { CsiNode, mounted } from '../frontends/csi/node.ts'
import { BEYOND, type SanityCase, SUITE } from '../frontends/csi/sanity.ts'
import { cannotMount } from './modekeep.ts'

let node: CsiNode
let source: string
const NONE = {}
/** Of a PersistentVolume with the access mode ReadWriteOncePod. */
const SINGLE = { mode: 6, volumeId: 'v', ephemeral: false }
const asked = (path: string, request: object = NONE) => call({ socket: node.socket }, path, request)

/** A publication as kubelet asks for it, without some fields or with others in their place. */
async function published(over: object) {
  const mount = { volume_mount_group: '' }
  return asked('Node/NodePublishVolume', {
    volume_id: 'csi-1',
    target_path: node.target(1),
    volume_capability: { mount, access_mode: { mode: 1 } },
    volume_context: {
      source,
      'csi.storage.k8s.io/pod.name': 'pod-1',
      'csi.storage.k8s.io/pod.namespace': 'shop',
      'csi.storage.k8s.io/pod.uid': node.uid(1),
      'csi.storage.k8s.io/ephemeral': 'true',
    },
    ...over,
  })
}

/** A call is answered with this alone; a message that names the field tells the call's author. */
async function refused(
  answer: Promise<{ code: string; message: string }>,
  words: string,
  code = 'csi-request',
): Promise<void> {
  expect(await answer).toEqual({ code: 'INVALID_ARGUMENT', message: `${words} [${code}]`, reply: {} })
  expect(fs.existsSync(node.target(1))).toBe(false)
}

/** The suite skips calls without a capability; modekeep answers them with UNIMPLEMENTED. */
async function unserved(method: string): Promise<void> {
  expect((await asked(`Node/${method}`)).code).toBe('UNIMPLEMENTED')
  const { reply } = await asked('Node/NodeGetCapabilities')
  const types = (reply.capabilities as { rpc: { type: number } }[]).map(({ rpc }) => rpc.type)
  expect(types).not.toContain(STAGE_UNSTAGE_VOLUME)
  expect(types).not.toContain(EXPAND_VOLUME)
}

// csi.proto: NodeServiceCapability.RPC.Type
const STAGE_UNSTAGE_VOLUME = 1
const EXPAND_VOLUME = 3

/** As a whole life of a volume goes, each call so many times. */
async function life(times: number): Promise<void> {
  expect(await asked('Node/NodeGetInfo')).toMatchObject({ code: 'OK', reply: { node_id: expect.stringMatching(/./) } })
  for (let time = 0; time < times; time++) expect((await node.publish(1, source)).code).toBe('OK')
  expect((await node.stats(1)).reply.usage).toHaveLength(2)
  for (let time = 0; time < times; time++) expect((await node.unpublish(1)).code).toBe('OK')
  expect(fs.existsSync(node.target(1))).toBe(false)
}

const staged = () => unserved('NodeStageVolume')
const unstaged = () => unserved('NodeUnstageVolume')
const expanded = () => unserved('NodeExpandVolume')

const CHECKS: Readonly<Record<SanityCase, () => Promise<void>>> = {
  async 'GetPluginCapabilities should return appropriate capabilities'() {
    expect(await asked('Identity/GetPluginCapabilities')).toEqual({
      code: 'OK',
      message: '',
      reply: { capabilities: [] },
    })
  },
  async 'Probe should return appropriate information'() {
    expect(await asked('Identity/Probe')).toMatchObject({ code: 'OK', reply: { ready: { value: true } } })
  },
  async 'GetPluginInfo should return appropriate information'() {
    const { code, reply } = await asked('Identity/GetPluginInfo')
    expect([code, reply.name]).toEqual(['OK', expect.stringMatching(/^[a-zA-Z][A-Za-z0-9._-]{0,61}[a-zA-Z]$/)])
    expect(reply.vendor_version).not.toBe('')
  },
  async 'NodeGetCapabilities should return appropriate capabilities'() {
    const { code, reply } = await asked('Node/NodeGetCapabilities')
    expect([code, reply.capabilities]).toEqual(['OK', [2, 4, 5, 6].map((type) => ({ rpc: { type } }))])
  },
  async 'NodeGetInfo should return appropriate values'() {
    const { code, reply } = await asked('Node/NodeGetInfo')
    expect([code, reply.node_id]).toEqual(['OK', expect.stringMatching(/./)])
    expect(Number(reply.max_volumes_per_node)).toBeGreaterThanOrEqual(0)
  },
  'NodePublishVolume should fail when no volume id is provided': () =>
    refused(published({ volume_id: undefined }), 'volume_id is missing: name it'),
  'NodePublishVolume should fail when no target path is provided': () =>
    refused(published({ target_path: undefined }), 'target_path is missing: name it'),
  'NodePublishVolume should fail when no volume capability is provided': () =>
    refused(published({ volume_capability: undefined }), 'volume_capability is missing: name it'),
  'NodePublishVolume should fail when no access mode is provided': () =>
    refused(
      published({ volume_capability: { mount: NONE } }),
      'volume_capability has access_mode 0: use one of 1, 2, 3, 4, 5, 6, 7',
    ),
  'NodePublishVolume should fail when no access type is provided': () =>
    refused(
      published({ volume_capability: { access_mode: { mode: 1 } } }),
      'volume_capability has no access type: name mount',
    ),
  'NodePublishVolume should fail when kubelet names no pod': () =>
    refused(
      published({ volume_context: { source } }),
      'kubelet does not say which pod the volume is for: the CSIDriver object must say podInfoOnMount: true',
      'csi-pod-info',
    ),
  async 'NodePublishVolume twice with the same arguments should change nothing'() {
    expect((await node.publish(1, source)).code).toBe('OK')
    const before = fs.statSync(node.target(1), { bigint: true })
    expect((await node.publish(1, source)).code).toBe('OK')
    expect(fs.statSync(node.target(1), { bigint: true })).toEqual(before)
  },
  async 'NodePublishVolume twice with other arguments should fail, and leave what is published'() {
    expect((await node.publish(1, source)).code).toBe('OK')
    expect(await node.publish(1, source, { attributes: { mountOptions: 'noatime' } })).toMatchObject({
      code: 'ALREADY_EXISTS',
      message: expect.stringContaining('is published with other options'),
    })
    expect(fs.readdirSync(node.target(1))).toEqual(['0'])
  },
  async 'NodePublishVolume of SINGLE_NODE_SINGLE_WRITER should fail at a second target, and name the first'() {
    expect((await node.publish(1, source, SINGLE)).code).toBe('OK')
    for (const wish of [
      SINGLE,
      { ...SINGLE, volumeId: 'other' },
      { ...SINGLE, attributes: { ownership: 'walk' }, group: '2000' },
    ]) {
      expect(await node.publish(2, source, wish)).toMatchObject({
        code: 'FAILED_PRECONDITION',
        message: expect.stringContaining(`is published at ${node.target(1)} (pod shop/pod-1)`),
      })
      expect(fs.existsSync(node.target(2))).toBe(false)
    }
    expect(node.mountState()).toHaveLength(1)
    expect((await node.publish(3, node.volume('other', 1), { ...SINGLE, volumeId: 'v3' })).code).toBe('OK')
  },
  async 'NodePublishVolume of SINGLE_NODE_SINGLE_WRITER twice at one target should work'() {
    for (let time = 0; time < 2; time++) expect((await node.publish(1, source, SINGLE)).code).toBe('OK')
    // Also where the source was replaced, so that the mount is.
    fs.renameSync(source, `${source}-old`)
    node.volume('data', 2)
    expect((await node.publish(1, source, SINGLE)).code).toBe('OK')
    expect(fs.readdirSync(node.target(1))).toEqual(['0', '1'])
  },
  async 'NodePublishVolume of SINGLE_NODE_SINGLE_WRITER should work where the first target is unpublished or lost'() {
    expect((await node.publish(1, source, SINGLE)).code).toBe('OK')
    execFileSync('umount', [node.target(1)])
    expect((await node.publish(2, source, SINGLE)).code).toBe('OK')
    // The lost one does not come back beside it.
    expect((await node.publish(1, source, SINGLE)).code).toBe('FAILED_PRECONDITION')
    expect((await node.unpublish(2)).code).toBe('OK')
    expect((await node.publish(1, source, SINGLE)).code).toBe('OK')
  },
  async 'NodePublishVolume of every other mode should work at a second target'() {
    expect((await node.publish(1, source, SINGLE)).code).toBe('OK')
    for (const mode of [1, 2, 3, 4, 5, 7]) {
      expect((await node.publish(mode + 1, source, { ...SINGLE, mode })).code).toBe('OK')
    }
    expect((await node.publish(1, source, SINGLE)).code).toBe('OK')
  },
  'NodeUnpublishVolume should fail when no volume id is provided': () =>
    refused(asked('Node/NodeUnpublishVolume', { target_path: node.target(1) }), 'volume_id is missing: name it'),
  'NodeUnpublishVolume should fail when no target path is provided': () =>
    refused(asked('Node/NodeUnpublishVolume', { volume_id: 'csi-1' }), 'target_path is missing: name it'),
  async 'NodeUnpublishVolume should remove target path'() {
    expect((await node.publish(1, source)).code).toBe('OK')
    expect(mounted(node.target(1))).toBe(true)
    expect((await node.unpublish(1)).code).toBe('OK')
    expect(fs.existsSync(node.target(1))).toBe(false)
    expect(fs.readdirSync(source)).toEqual(['0'])
  },
  async 'NodeUnpublishVolume twice should work'() {
    expect((await node.publish(1, source)).code).toBe('OK')
    for (let time = 0; time < 2; time++) {
      expect(await node.unpublish(1)).toEqual({ code: 'OK', message: '', reply: {} })
    }
  },
  async 'NodeUnpublishVolume of an unknown volume should work'() {
    expect(await node.unpublish(1)).toEqual({ code: 'OK', message: '', reply: {} })
  },
  'NodeStageVolume should fail when no volume id is provided': staged,
  'NodeStageVolume should fail when no staging target path is provided': staged,
  'NodeStageVolume should fail when no volume capability is provided': staged,
  'NodeUnstageVolume should fail when no volume id is provided': unstaged,
  'NodeUnstageVolume should fail when no staging target path is provided': unstaged,
  'NodeGetVolumeStats should fail when no volume id is provided': () =>
    refused(asked('Node/NodeGetVolumeStats', { volume_path: 'some/path' }), 'volume_id is missing: name it'),
  'NodeGetVolumeStats should fail when no volume path is provided': () =>
    refused(asked('Node/NodeGetVolumeStats', { volume_id: 'csi-1' }), 'volume_path is missing: name it'),
  async 'NodeGetVolumeStats should fail when volume is not found'() {
    for (const path of ['some/path', node.target(1), '/some/path', '/../some/path']) {
      expect(await asked('Node/NodeGetVolumeStats', { volume_id: 'csi-1', volume_path: path })).toMatchObject({
        code: 'NOT_FOUND',
        message: `nothing is published at ${quoteValue(path)}`,
      })
    }
  },
  async 'NodeGetVolumeStats should fail when volume does not exist on the specified path'() {
    expect((await node.publish(1, source)).code).toBe('OK')
    for (const path of ['some/path', node.target(2)]) {
      expect((await asked('Node/NodeGetVolumeStats', { volume_id: 'csi-1', volume_path: path })).code).toBe('NOT_FOUND')
    }
  },
  'NodeExpandVolume should fail when no volume id is provided': expanded,
  'NodeExpandVolume should fail when no volume path is provided': expanded,
  'NodeExpandVolume should fail when volume is not found': expanded,
  'NodeExpandVolume should work if node-expand is called after node-publish': expanded,
  'Node Service should work': () => life(1),
  'Node Service should be idempotent': () => life(10),
}

const CASES = [...SUITE, ...BEYOND]

it('the test has a check for each case of csi-sanity, and no other', () => {
  expect(Object.keys(CHECKS).sort()).toEqual([...CASES].sort())
  expect(new Set(CASES).size).toBe(CASES.length)
  expect(SUITE).toHaveLength(26)
})

describe.skipIf(cannotMount !== '')(`csi-sanity${cannotMount}`, () => {
  beforeEach(async () => {
    node = new CsiNode()
    source = node.volume('data', 1)
    await node.serve()
    return () => node.end()
  })

  it.each(CASES)('%s', (name) => CHECKS[name]())
})
