import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import { readOwnVolumeRestrictions } from '../../src/container/own-volume.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import type { Session } from '../../src/state/session.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { cannotMount } from '../real-mounts/mapped-volume.ts'
import { nodeWith, UID } from './node.ts'

/** Kernels before Linux 6.8 tell nothing of one mount. */
const hasStatmount = nodeHasStatmount()

function nodeHasStatmount(): boolean {
  const [major = 0, minor = 0] = fs.readFileSync('/proc/sys/kernel/osrelease', 'utf8').split('.').map(Number)
  return major > 6 || (major === 6 && minor >= 8)
}

/** A node whose pod has volumes of modekeep's by both doors, with parts, and one of another driver's. */
async function nodeWithVolumes() {
  const node = nodeWith('tmpfs')
  fs.mkdirSync(`${node.volume}/sub`)
  const config = { ...node.session.config, allow: [{ sources: [node.volume] }] }
  const session: Session = { ...node.session, config }
  const own = `${node.pod}/volumes/modekeep~fs/v`
  const claim = `${node.pod}/volumes/kubernetes.io~csi/pv/mount`
  for (const directory of [own, claim]) {
    fs.mkdirSync(directory, { recursive: true })
    const options = { source: node.volume, mountOptions: 'noexec', ownership: 'none', 'kubernetes.io/pod.uid': UID }
    await mountPodVolume(session, parseFlexVolumeRequest(directory, JSON.stringify(options), config, volumeKindLookup))
  }
  const parts = ['sub', 'file'].map((name, at) => {
    const target = `${node.pod}/volume-subpaths/v/app/${at}`
    fs.mkdirSync(dirname(target), { recursive: true })
    if (name === 'sub') fs.mkdirSync(target)
    else fs.writeFileSync(target, '')
    execFileSync('mount', ['--bind', `${own}/${name}`, target])
    return target
  })
  execFileSync('mount', ['-o', 'remount,bind,nosuid', node.source])
  const sources = [own, claim, ...parts, node.source]
  const request = {
    container: 'c0ffee',
    containerName: 'app',
    pod: { namespace: 'default', name: 'web', uid: UID },
    kubeletDir: node.kubeletDir,
    mounts: sources.map((source, at) => ({ destination: `/m${at}`, source })),
  }
  return { ...node, session, request, own }
}

const FLAGS = ['nosuid', 'nodev', 'noexec']
const EXPECTED = [FLAGS, FLAGS, FLAGS, FLAGS, []]

function countingTables(session: Session) {
  const { host } = session
  const counted = { tables: 0 }
  const table = () => {
    counted.tables++
    return host.mounts.table()
  }
  return {
    counted,
    of: (more: object) => ({ ...session, host: { ...host, mounts: { ...host.mounts, table, ...more } } }),
  }
}

const skipped = cannotMount('tmpfs')

describe.skipIf(skipped !== '')(`mount options of a container${skipped}`, () => {
  it.runIf(hasStatmount)(
    "the mount options of modekeep's own volumes and of their parts are read by handle, without the mount table",
    async () => {
      const { session, request } = await nodeWithVolumes()
      const { counted, of } = countingTables(session)
      expect(readOwnVolumeRestrictions(of({}), request)).toEqual(EXPECTED)
      expect(counted.tables).toBe(0)
    },
  )

  it('the mount table is read once for all mounts of a container on a kernel before 6.8', async () => {
    const { session, request } = await nodeWithVolumes()
    const { counted, of } = countingTables(session)
    expect(readOwnVolumeRestrictions(of({ attributesOf: () => undefined }), request)).toEqual(EXPECTED)
    expect(counted.tables).toBe(1)
  })

  it('each clone of a container has the mount options of its volume on a kernel before 6.8', async () => {
    const node = nodeWith('tmpfs')
    execFileSync('mount', ['-o', 'remount,bind,nosuid,nodev', node.source])
    const { host } = node.session
    const session = { ...node.session, host: { ...host, mounts: { ...host.mounts, attributesOf: () => undefined } } }
    const order = node.order([node.clone(), node.clone({ destination: '/again' })])
    const { mounts } = await attachContainerClones(session, order)
    const restrictions = ['nosuid', 'nodev']
    expect(mounts).toMatchObject([{ restrictions }, { restrictions }])
  })

  it('a mount whose options cannot be read causes a warning, and the options of the other mounts are returned', async () => {
    const { session, request, own, warnings } = await nodeWithVolumes()
    const mounts = [
      { destination: '/gone', source: `${own}-2` },
      { destination: '/m', source: own },
    ]
    expect(readOwnVolumeRestrictions(session, { ...request, mounts })).toEqual([[], FLAGS])
    expect(warnings.join()).toContain('the mount options of the volume at "/gone" could not be read')
  })
})
