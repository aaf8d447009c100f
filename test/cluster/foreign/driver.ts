import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { CsiIdentityService, CsiNodeService, PluginRegistrationService } from '../../../src/frontends/csi/messages.ts'
import { parseMountinfo, selectMountLayers } from '../../../src/kernel/mount-table/mountinfo.ts'
import { createUnaryCallHandlers, listenOnGrpcSocket } from '../../../src/rpc/server.ts'
import { KUBELETS_ROOT } from '../../kubelet/node/kubelet.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import { fill, ON_DISK } from '../../runtimes/node/disks.ts'
import { NODE } from '../plane/certificates.ts'
import type { Cluster } from '../plane/cluster.ts'
import { Staged } from './messages.ts'

export const FOREIGN = 'foreign.csi.test'
const SIZE = '32M'
const FILES_PER_DIRECTORY = 1000
// csi.proto: NodeServiceCapability.RPC.Type
const STAGE_UNSTAGE_VOLUME = 1

/** What a driver answers on its socket. */
const { NodeGetInfo, NodeGetCapabilities, NodeUnpublishVolume } = CsiNodeService
const SERVICES = { ...CsiIdentityService, NodeGetInfo, NodeGetCapabilities, NodeUnpublishVolume, ...Staged }

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })

/**
 * A CSI driver that knows nothing of modekeep, for as long as `work` takes: a volume is an ext4 file system of its own, which is
 * staged once on the node and bound into each pod's directory.
 * @param fsGroupPolicy of its CSIDriver object; `None`: kubelet leaves fsGroup alone
 */
export async function withForeignDriver<Seen>(
  cluster: Cluster,
  work: (driver: ForeignDriver) => Promise<Seen>,
  fsGroupPolicy: 'None' | 'File' = 'None',
): Promise<Seen> {
  const driver = new ForeignDriver(`${cluster.elsewhere}/foreign`)
  const object = csiDriver(fsGroupPolicy)
  await cluster.apply(object)
  const stop = await driver.serve()
  const isKnown = async () => {
    const drivers: Resource[] = (await cluster.get(`csinode/${NODE}`))?.spec.drivers ?? []
    return drivers.some(({ name }) => name === FOREIGN)
  }
  try {
    await until('kubelet has the driver', isKnown)
    const seen = await work(driver)
    await until('the driver has no volume on the node', () => driver.staged.size === 0)
    if (driver.faults.length > 0) throw new Error(`the driver could not: ${driver.faults.join('; ')}`)
    return seen
  } finally {
    await stop()
    await cluster.withdraw(object)
  }
}

/** The driver's object. @param fsGroupPolicy `File`: kubelet walks its volumes */
const csiDriver = (fsGroupPolicy: string): Resource => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: FOREIGN },
  spec: { attachRequired: false, podInfoOnMount: false, fsGroupPolicy },
})

export class ForeignDriver {
  /** Where a volume is on the node, by its name. */
  readonly staged = new Map<string, string>()
  /** The failed calls, such as for a busy volume. */
  readonly faults: string[] = []
  readonly #images: string
  /** Fills a volume when it is staged first, by its name. */
  readonly #fill = new Map<string, (directory: string) => void>()

  constructor(images: string) {
    this.#images = images
    fs.mkdirSync(images, { recursive: true })
  }

  /** Makes one, which is filled when it is staged first. @returns what a PersistentVolume has of it */
  volume(name: string, fillVolume: (directory: string) => void = fill): Resource {
    this.#fill.set(name, fillVolume)
    return this.#make(name, SIZE)
  }

  #make(name: string, size: string, ...options: readonly string[]): Resource {
    run('truncate', '-s', size, this.#image(name))
    run('mkfs.ext4', '-q', '-F', ...options, this.#image(name))
    return { csi: { driver: FOREIGN, volumeHandle: name, fsType: 'ext4' } }
  }

  #image(name: string): string {
    return `${this.#images}/${name}.ext4`
  }

  /** Makes one with so many files of group ON_DISK. @returns what a PersistentVolume has of it */
  largeVolume(name: string, files: number): Resource {
    const source = this.#make(name, '512M', '-N', String(2 * files))
    const directory = `${this.#images}/${name}`
    fs.mkdirSync(directory)
    run('mount', '-o', 'loop', this.#image(name), directory)
    try {
      fill(directory)
      for (let at = 0; at < files; at++) {
        const parent = `${directory}/${Math.floor(at / FILES_PER_DIRECTORY)}`
        if (at % FILES_PER_DIRECTORY === 0) fs.mkdirSync(parent, { mode: 0o770 })
        fs.writeFileSync(`${parent}/${at}`, '', { mode: 0o640 })
      }
      run('chown', '-R', `0:${ON_DISK}`, directory)
    } finally {
      run('umount', directory)
    }
    return source
  }

  async serve(): Promise<() => Promise<void>> {
    const endpoint = `${KUBELETS_ROOT}/plugins/${FOREIGN}/csi.sock`
    fs.mkdirSync(`${KUBELETS_ROOT}/plugins/${FOREIGN}`, { recursive: true })
    const failed = (call: string, message: string) => void this.faults.push(`${call}: ${message}`)
    const csi = await listenOnGrpcSocket(
      endpoint,
      SERVICES,
      createUnaryCallHandlers<typeof SERVICES>(failed, {
        GetPluginInfo: () => ({ name: FOREIGN, vendorVersion: '1' }),
        GetPluginCapabilities: () => ({}),
        Probe: () => ({ ready: { value: true } }),
        NodeGetInfo: () => ({ nodeId: NODE, maxVolumesPerNode: 0n }),
        NodeGetCapabilities: () => ({ capabilities: [{ rpc: { type: STAGE_UNSTAGE_VOLUME } }] }),
        NodeStageVolume: ({ volumeId, stagingTargetPath }) => this.#stage(volumeId, stagingTargetPath),
        NodeUnstageVolume: ({ volumeId, stagingTargetPath }) => {
          unmount(stagingTargetPath)
          this.staged.delete(volumeId)
          return {}
        },
        NodePublishVolume: ({ stagingTargetPath, targetPath, readonly }) => {
          fs.mkdirSync(targetPath, { recursive: true })
          if (!isMounted(targetPath)) run('mount', '-o', readonly ? 'bind,ro' : 'bind', stagingTargetPath, targetPath)
          return {}
        },
        NodeUnpublishVolume: ({ targetPath }) => {
          unmount(targetPath)
          fs.rmSync(targetPath, { recursive: true, force: true })
          return {}
        },
      }),
    )
    // Kubelet calls as soon as it sees it.
    const registration = await listenOnGrpcSocket(
      `${KUBELETS_ROOT}/plugins_registry/${FOREIGN}-reg.sock`,
      PluginRegistrationService,
      createUnaryCallHandlers<typeof PluginRegistrationService>(failed, {
        GetInfo: () => ({ type: 'CSIPlugin', name: FOREIGN, endpoint, supportedVersions: ['1.0.0'] }),
        NotifyRegistrationStatus: ({ pluginRegistered, error }) => {
          if (!pluginRegistered) failed('registration', error)
          return {}
        },
      }),
    )
    return async () => {
      for (const server of [registration, csi]) await server.close(0)
    }
  }

  #stage(volume: string, directory: string): object {
    fs.mkdirSync(directory, { recursive: true })
    if (!isMounted(directory)) run('mount', '-o', 'loop', this.#image(volume), directory)
    this.#fill.get(volume)?.(directory)
    this.#fill.delete(volume)
    this.staged.set(volume, directory)
    return {}
  }
}

const isMounted = (directory: string) =>
  selectMountLayers(parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')), directory).length > 0

function unmount(directory: string): void {
  if (isMounted(directory)) run('umount', directory)
}
