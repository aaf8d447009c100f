import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import type { CloneRequest } from '../../src/container/clone-request.ts'
import { releaseContainerClones } from '../../src/container/container-task.ts'
import { ACCESS_ACL_ATTRIBUTE } from '../../src/ownership/inode/attributes.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { CONTAINER, UID } from '../container/node.ts'
import { makeImage } from '../helpers/disks.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { as, scratch } from '../real-mounts/mapped-volume.ts'

const title = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
const REFUSED = /its group on disk is 0, a group of the system, and users of the node reach the volume/

describe.skipIf(!isRoot)(`a volume whose group on disk is a group of the system${title}`, () => {
  let stage: Stage
  /** Volume of a pod, below a directory like /srv or kubelet's. The stage's root has mode 0755. */
  let volume: string
  const unmounts: string[] = []

  beforeEach(() => {
    stage = kernelStage('ext4')
    // The rules of other tests permit groups of the system.
    stage.config = { ...stage.config, allow: [{ sources: [`${stage.top}/srv/*`, `${stage.top}/closed/*`] }] }
    volume = makeVolume(`${stage.top}/srv/data`)
    fs.mkdirSync(`${stage.top}/kubelet`)
  })
  afterEach(() => {
    for (const path of unmounts.splice(0).reverse()) execFileSync('umount', [path])
    stage.close()
  })

  function makeVolume(path: string): string {
    fs.mkdirSync(path, { recursive: true })
    fs.chmodSync(path, 0o775)
    return path
  }
  function bind(source: string, target: string): void {
    fs.mkdirSync(target, { recursive: true })
    execFileSync('mount', ['--bind', source, target])
    unmounts.push(target)
  }
  /** Does the same as `setfacl -m u:1000:x` on a directory of mode 0750. */
  function letSearch(path: string): void {
    const entries = '01000700ffffffff 02000100e8030000 04000500ffffffff 10000500ffffffff 20000000ffffffff'
    const { inodes } = stage.host
    const directory = inodes.openTrusted(path)
    inodes.setAttribute(directory, ACCESS_ACL_ATTRIBUTE, Buffer.from(`02000000${entries.replaceAll(' ', '')}`, 'hex'))
    inodes.close(directory)
  }
  const idmap = (source: string, more: Record<string, string> = {}) =>
    stage.mount('a', { source, ownership: 'idmap', 'kubernetes.io/fsGroup': '2000', ...more })

  /** Requests a clone as containerd does for a pod with another driver's volume. */
  async function clone(source: string, over: Partial<CloneRequest> = {}): Promise<void> {
    const order: CloneRequest = {
      volume: 'data',
      destination: '/data',
      source,
      options: ['rbind', 'rw'],
      group: 2000,
      requestedBy: '',
      isOwn: false,
      ...over,
    }
    await attachContainerClones(stage.session(), {
      container: CONTAINER,
      containerName: 'app',
      sandbox: '5a',
      pod: { namespace: 'default', name: 'web', uid: UID },
      hasUserNamespace: false,
      kubeletDir: `${stage.top}/kubelet`,
      clones: [order],
      isOptional: false,
    })
    await releaseContainerClones(stage.session(), CONTAINER, 'gone')
    const stagingMount = `${stage.config.stateDir}/nri/mounts`
    if (fs.existsSync(stagingMount)) execFileSync('umount', [stagingMount])
  }

  const DOORS = [
    ['FlexVolume and CSI', (source: string) => idmap(source)],
    ['NRI', (source: string) => clone(source)],
  ] as const

  describe.each(DOORS)('through %s', (_, map) => {
    it('is not mapped below directories of mode 0755, also if another mount shows a part of it', async () => {
      await expect(map(volume)).rejects.toThrow(REFUSED)
      const hidden = makeVolume(`${stage.top}/closed/data`)
      fs.chmodSync(`${stage.top}/closed`, 0o750)
      makeVolume(`${hidden}/part`)
      bind(`${hidden}/part`, `${stage.top}/export/part`)
      await expect(map(hidden)).rejects.toThrow(REFUSED)
    })

    it('is mapped below a directory of mode 0750 owned by root:root', async () => {
      fs.chmodSync(`${stage.top}/srv`, 0o750)
      await map(volume)
    })

    it.each([
      ['belongs to a user', () => fs.chownSync(`${stage.top}/srv`, 1000, 0)],
      ['belongs to a group of users', () => fs.chownSync(`${stage.top}/srv`, 0, 1000)],
      ['has an ACL', () => letSearch(`${stage.top}/srv`)],
    ])('is not mapped below a directory of mode 0750 that %s', async (_case, open) => {
      fs.chmodSync(`${stage.top}/srv`, 0o750)
      open()
      await expect(map(volume)).rejects.toThrow(REFUSED)
    })

    it('is mapped if each mount that shows it has nosuid', async () => {
      fs.chmodSync(`${stage.top}/srv`, 0o750)
      bind(volume, `${stage.top}/export`)
      await expect(map(volume)).rejects.toThrow(REFUSED)
      execFileSync('mount', ['-o', 'remount,bind,nosuid', `${stage.top}/export`])
      await map(volume)
    })

    it('is mapped if another mount hides the path to it', async () => {
      const other = makeVolume(`${stage.top}/other`)
      bind(volume, `${stage.top}/closed/data`)
      fs.chmodSync(`${stage.top}/closed`, 0o700)
      bind(other, `${stage.top}/srv`)
      await map(`${stage.top}/closed/data`)
    })

    it('is mapped with a group of users, from 1000 on', async () => {
      fs.chownSync(volume, 0, 999)
      await expect(map(volume)).rejects.toThrow('its group on disk is 999')
      fs.chownSync(volume, 0, 1000)
      await map(volume)
    })
  })

  it('is mapped by a CSI driver below kubelet, whose directories have mode 0750', async () => {
    const kubelet = `${stage.top}/kubelet`
    const source = `${kubelet}/pods/${UID}/volumes/kubernetes.io~csi/pv/mount`
    const staged = makeVolume(`${kubelet}/plugins/kubernetes.io/csi/x/globalmount`)
    bind(staged, source)
    await expect(clone(source)).rejects.toThrow(REFUSED)
    for (const name of ['pods', 'plugins']) fs.chmodSync(`${kubelet}/${name}`, 0o750)
    await clone(source)
  })

  it('would let each user of the node get the group by an executable of the pod if the check were missing', async () => {
    stage.allow({ systemGroups: true })
    await idmap(volume)
    const pod = stage.podDirectory('a')
    as({ group: 1000, also: 2000 }, `cp /usr/bin/id ${pod}/id && chgrp 2000 ${pod}/id && chmod 2755 ${pod}/id`)
    expect(as({ group: 1001 }, `${volume}/id -g`)).toBe('0')
  })

  it('is walked with "auto", and the reply has the reason', async () => {
    await idmap(volume, { ownership: 'auto' })
    expect(listReadableMountRecords(stage)).toMatchObject([
      { given: { by: 'walk', why: expect.stringMatching(REFUSED) } },
    ])
    expect(fs.statSync(volume).gid).toBe(2000)
    expect(stage.noted.systemGroup).toEqual({ group: 0, path: volume })
  })

  it('is mapped read-only, as no executable can be created', async () => {
    await idmap(volume, { 'kubernetes.io/readwrite': 'ro' })
    await clone(volume, { options: ['rbind', 'ro'] })
  })

  it('is mapped if a rule has systemGroups, and a repeat succeeds after the rule was withdrawn', async () => {
    stage.allow({ systemGroups: true })
    await idmap(volume)
    stage.allow({ systemGroups: false })
    execFileSync('umount', [stage.podDirectory('a')])
    await idmap(volume)
    await stage.unmount('a')
    await expect(idmap(volume)).rejects.toThrow(REFUSED)
    await clone(volume, { grants: [{ fsTypes: ['ext4'] }, { fsTypes: ['ext4'], systemGroups: true }] })
    const other = clone(volume, { grants: [{ fsTypes: ['ext4'] }, { fsTypes: ['xfs'], systemGroups: true }] })
    await expect(other).rejects.toThrow(REFUSED)
  })

  it('is treated the same if a rule protects the group on disk by number', async () => {
    fs.chownSync(volume, 0, 5000)
    stage.allow({ protectedGroups: ['5000-5099'] })
    await expect(idmap(volume)).rejects.toThrow('its group on disk is 5000, a group of the system')
    const grants = [{ fsTypes: ['ext4'], protectedGroups: ['5000'] }]
    await expect(clone(volume, { grants })).rejects.toThrow('its group on disk is 5000')
    await clone(volume)
  })

  it.each(['ext4', 'btrfs'] as const)(
    'is treated the same if the volume is an image (%s) that a pod has mounted with "suid"',
    async (fsType) => {
      const image = `${scratch()}/image`
      makeImage(image, fsType)
      stage.config = { ...stage.config, allow: [{ sources: [image], fsTypes: [fsType], mountOptions: ['suid'] }] }
      const options = { source: image, 'kubernetes.io/fsType': fsType }
      const map = () => idmap(image, options)
      await map()
      await stage.unmount('a')
      await stage.mount('b', { ...options, mountOptions: 'suid' })
      await expect(map()).rejects.toThrow('its group on disk is 100, a group of the system')
      fs.chmodSync(`${stage.top}/pods`, 0o750)
      await map()
    },
  )

  it('is treated the same if idmapFrom names the group on disk', async () => {
    fs.chownSync(volume, 0, 1500)
    stage.allow({ idmapFrom: ['42'] })
    await expect(idmap(volume, { idmapFrom: '42' })).rejects.toThrow('its group on disk is 42')
  })
})
