import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readPodVolumes } from '../../../src/frontends/nri/pod-volumes.ts'
import { isRoot } from '../../helpers/stage.ts'
import { UID } from './pods.ts'

let top: string
let volumes: string
beforeEach(() => {
  top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'modekeep-look-')))
  volumes = `${top}/disk/kubelet/pods/${UID}/volumes`
  fs.mkdirSync(volumes, { recursive: true })
  fs.symlinkSync('disk/kubelet', `${top}/kubelet`)
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

function csi(name: string, note?: string): void {
  fs.mkdirSync(`${volumes}/kubernetes.io~csi/${name}`, { recursive: true })
  if (note !== undefined) fs.writeFileSync(`${volumes}/kubernetes.io~csi/${name}/vol_data.json`, note)
}

it("kubelet's directory of a pod is read with its real path, its volumes and their drivers", async () => {
  fs.mkdirSync(`${volumes}/kubernetes.io~empty-dir/scratch`, { recursive: true })
  csi('pvc-1', JSON.stringify({ driverName: 'ebs.csi.aws.com' }))
  for (const root of ['kubelet', 'disk/kubelet']) {
    const told = readPodVolumes(`${top}/${root}`, UID)
    expect(told).toEqual({
      directory: `${top}/disk/kubelet/pods/${UID}`,
      plugins: new Map([
        ['scratch', 'kubernetes.io~empty-dir'],
        ['pvc-1', 'kubernetes.io~csi'],
      ]),
      drivers: new Map([['pvc-1', 'ebs.csi.aws.com']]),
    })
  }
})

it("a CSI volume's driver is unknown if kubelet's vol_data.json is missing, invalid or no file", async () => {
  csi('missing')
  csi('broken', '{"driver')
  csi('none', '{}')
  csi('directory')
  fs.mkdirSync(`${volumes}/kubernetes.io~csi/directory/vol_data.json`)
  const { drivers, plugins } = readPodVolumes(`${top}/kubelet`, UID)
  expect([...plugins.keys()].sort()).toEqual(['broken', 'directory', 'missing', 'none'])
  expect(drivers).toEqual(new Map())
})

it("kubelet's vol_data.json is read only from a small regular file, without blocking", async () => {
  const note = JSON.stringify({ driverName: 'ebs.csi.aws.com' })
  csi('fifo')
  execFileSync('mkfifo', [`${volumes}/kubernetes.io~csi/fifo/vol_data.json`])
  csi('device')
  fs.symlinkSync('/dev/zero', `${volumes}/kubernetes.io~csi/device/vol_data.json`)
  csi('large', note.padEnd(70_000))
  csi('largest', note.padEnd(65_536))
  const { drivers } = readPodVolumes(`${top}/kubelet`, UID)
  expect(drivers).toEqual(new Map([['largest', 'ebs.csi.aws.com']]))
})

it.runIf(isRoot)(
  "a link that a user other than root has put in place of kubelet's vol_data.json is not followed",
  async () => {
    fs.writeFileSync(`${top}/note`, JSON.stringify({ driverName: 'ebs.csi.aws.com' }))
    for (const [name, owner] of [
      ['own', 0],
      ['foreign', 1000],
    ] as const) {
      csi(name)
      fs.symlinkSync(`${top}/note`, `${volumes}/kubernetes.io~csi/${name}/vol_data.json`)
      fs.lchownSync(`${volumes}/kubernetes.io~csi/${name}/vol_data.json`, owner, owner)
    }
    const { drivers } = readPodVolumes(`${top}/kubelet`, UID)
    expect(drivers).toEqual(new Map([['own', 'ebs.csi.aws.com']]))
  },
)

it('a volume name that two volume plugins of a pod use counts as unknown', async () => {
  csi('data')
  fs.mkdirSync(`${volumes}/kubernetes.io~empty-dir/data`, { recursive: true })
  expect(readPodVolumes(`${top}/kubelet`, UID).plugins.has('data')).toBe(false)
})

it("a pod is refused if kubelet has no directory for the pod, or if its uid would lead out of kubelet's directory", async () => {
  expect(() => readPodVolumes(`${top}/kubelet`, 'another')).toThrow(
    `kubelet has no directory "${top}/kubelet/pods/another" here: give its --root-dir as --kubelet-dir`,
  )
  expect(() => readPodVolumes(`${top}/kubelet`, `../pods/${UID}`)).toThrow("which is not the form of a pod's uid")
})
