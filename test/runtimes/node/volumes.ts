import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { BINARY } from '../../kubelet/node/drivers.ts'
import { KUBELETS_ROOT } from '../../kubelet/node/kubelet.ts'

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
const mount = (...args: string[]) => run('mount', ...args)

/** A volume as a pod has it: what is on the node before a container is made. */
export interface Volume {
  /** Makes it for a pod, where kubelet makes it. @returns the path that kubelet hands to the runtime */
  publish(uid: string, name: string): string
  /** As kubelet takes it away with the pod. @throws {Error} where it is still in use */
  unpublish(uid: string, name: string): void
  /** The path of the volume itself, for what tests write and look at. */
  readonly path: string
}

/** Name of a CSI driver that knows nothing of modekeep. */
const FOREIGN = 'foreign.csi.test'

/**
 * A volume of another CSI driver: a file system that is staged once on the node, at kubelet's place for it, and bound into
 * each pod's directory.
 */
export class CsiVolume implements Volume {
  readonly path: string
  readonly #handle: string
  readonly #stage: string[]

  /** @param stage arguments of mount(8) before the directory */
  constructor(handle: string, stage: readonly string[]) {
    this.#handle = handle
    this.#stage = [...stage]
    const hash = createHash('sha256').update(handle).digest('hex')
    this.path = `${KUBELETS_ROOT}/plugins/kubernetes.io/csi/${FOREIGN}/${hash}/globalmount`
  }

  stage(): this {
    fs.mkdirSync(this.path, { recursive: true })
    mount(...this.#stage, this.path)
    return this
  }

  /** Unmounts the volume like a driver after the last pod. @throws {Error} if the file system is busy */
  unstage(): void {
    run('umount', this.path)
    fs.rmSync(this.path, { recursive: true })
  }

  publish(uid: string): string {
    const directory = `${KUBELETS_ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-${this.#handle}`
    fs.mkdirSync(`${directory}/mount`, { recursive: true })
    const data = { driverName: FOREIGN, nodeName: 'node', specVolID: `pv-${this.#handle}`, volumeHandle: this.#handle }
    const more = { attachmentID: `csi-${this.#handle}`, volumeLifecycleMode: 'Persistent' }
    fs.writeFileSync(`${directory}/vol_data.json`, JSON.stringify({ ...data, ...more }))
    mount('--bind', this.path, `${directory}/mount`)
    return `${directory}/mount`
  }

  unpublish(uid: string): void {
    const directory = `${KUBELETS_ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-${this.#handle}`
    run('umount', `${directory}/mount`)
    fs.rmSync(directory, { recursive: true })
  }
}

/** A local PersistentVolume: a directory or a file system of the node, bound into the pod's directory. */
export class LocalVolume implements Volume {
  readonly path: string
  readonly #name: string

  /** @param mounted arguments of mount(8) before the path, where it is a file system of its own */
  constructor(name: string, path: string, mounted: readonly string[] = []) {
    this.#name = name
    this.path = path
    if (mounted.length > 0) mount(...mounted, path)
  }

  /** Of a file system of its own. */
  unmount(): void {
    run('umount', this.path)
  }

  publish(uid: string): string {
    const directory = `${KUBELETS_ROOT}/pods/${uid}/volumes/kubernetes.io~local-volume/${this.#name}`
    fs.mkdirSync(directory, { recursive: true })
    mount('--bind', this.path, directory)
    return directory
  }

  unpublish(uid: string): void {
    const directory = `${KUBELETS_ROOT}/pods/${uid}/volumes/kubernetes.io~local-volume/${this.#name}`
    run('umount', directory)
    fs.rmdirSync(directory)
  }
}

/** A directory of the node. */
export class HostPath implements Volume {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  publish(): string {
    return this.path
  }

  unpublish(): void {}
}

/** Below kubelet's directory of the pod: on the disk of that, or memory. */
export class EmptyDir implements Volume {
  readonly #medium: '' | 'Memory'
  #path = ''

  constructor(medium: '' | 'Memory' = '') {
    this.#medium = medium
  }

  get path(): string {
    return this.#path
  }

  publish(uid: string, name: string): string {
    this.#path = `${KUBELETS_ROOT}/pods/${uid}/volumes/kubernetes.io~empty-dir/${name}`
    fs.mkdirSync(this.#path, { recursive: true })
    if (this.#medium === 'Memory') mount('-t', 'tmpfs', 'tmpfs', this.#path)
    fs.chmodSync(this.#path, 0o777)
    return this.#path
  }

  unpublish(): void {
    if (this.#medium === 'Memory') run('umount', this.#path)
    fs.rmSync(this.#path, { recursive: true })
  }
}

/** modekeep's own, through FlexVolume. */
export class OwnVolume implements Volume {
  readonly path: string
  readonly #options: Readonly<Record<string, string>>

  /** @param options with the group of the pod */
  constructor(path: string, group: number, options: Readonly<Record<string, string>>) {
    this.path = path
    this.#options = { ...options, source: path, 'kubernetes.io/mounterArgs.FsGroup': String(group) }
  }

  publish(uid: string, name: string): string {
    const directory = directoryOfOwn(uid, name)
    fs.mkdirSync(directory, { recursive: true })
    const pod = {
      'kubernetes.io/pod.uid': uid,
      'kubernetes.io/pod.namespace': 'default',
      'kubernetes.io/pod.name': name,
    }
    const more = { 'kubernetes.io/readwrite': 'rw', 'kubernetes.io/pvOrVolumeName': name }
    mustSucceed('mount', directory, JSON.stringify({ ...this.#options, ...pod, ...more }))
    return directory
  }

  unpublish(uid: string, name: string): void {
    mustSucceed('unmount', directoryOfOwn(uid, name))
    fs.rmdirSync(directoryOfOwn(uid, name))
  }
}

const directoryOfOwn = (uid: string, name: string) => `${KUBELETS_ROOT}/pods/${uid}/volumes/modekeep~fs/${name}`

function mustSucceed(...args: string[]): void {
  const { status, message } = JSON.parse(execFileSync(BINARY, args, { encoding: 'utf8' }))
  if (status !== 'Success') throw new Error(message)
}

/** What kubelet writes itself: a projected volume with a token. */
export class Projected implements Volume {
  #path = ''

  get path(): string {
    return this.#path
  }

  publish(uid: string, name: string): string {
    this.#path = `${KUBELETS_ROOT}/pods/${uid}/volumes/kubernetes.io~projected/${name}`
    fs.mkdirSync(this.#path, { recursive: true })
    mount('-t', 'tmpfs', 'tmpfs', this.#path)
    fs.writeFileSync(`${this.#path}/token`, 'token\n', { mode: 0o644 })
    return this.#path
  }

  unpublish(): void {
    run('umount', this.#path)
    fs.rmSync(this.#path, { recursive: true })
  }
}

/** As kubelet does for `subPath`: the directory is bound to a place of the pod's, which the runtime is given. */
export function bindSubPath(uid: string, volume: string, container: string, index: number, source: string): string {
  const place = `${KUBELETS_ROOT}/pods/${uid}/volume-subpaths/${volume}/${container}/${index}`
  const isFile = fs.statSync(source).isFile()
  fs.mkdirSync(isFile ? place.replace(/\/[^/]*$/, '') : place, { recursive: true })
  if (isFile) fs.writeFileSync(place, '')
  mount('--bind', source, place)
  return place
}

export function unbindSubPaths(uid: string): void {
  const top = `${KUBELETS_ROOT}/pods/${uid}/volume-subpaths`
  if (!fs.existsSync(top)) return
  for (const line of fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const place = line.split(' ')[4] ?? ''
    if (place.startsWith(`${top}/`)) run('umount', place)
  }
  fs.rmSync(top, { recursive: true })
}
