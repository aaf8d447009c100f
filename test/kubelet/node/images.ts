import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'

export const IMAGE = 'modekeep.test/busybox:1'
export const PAUSE = 'modekeep.test/pause:1'

const IMAGES = {
  [IMAGE]: ['/bin/sleep', '1000000'],
  // The container runtime kills a sandbox without asking, so its process need not listen.
  [PAUSE]: ['/bin/sleep', '1000000'],
}

/** Makes a docker-archive with both images, of one layer: a static busybox and its links. Returns its path. */
export function makeImages(directory: string, busybox: string): string {
  const root = `${directory}/root`
  for (const part of ['bin', 'etc', 'proc', 'sys', 'dev']) fs.mkdirSync(`${root}/${part}`, { recursive: true })
  fs.mkdirSync(`${root}/tmp`)
  fs.chmodSync(`${root}/tmp`, 0o1777)
  fs.copyFileSync(busybox, `${root}/bin/busybox`)
  for (const name of execFileSync(busybox, ['--list']).toString().trim().split('\n')) {
    if (name !== 'busybox') fs.symlinkSync('busybox', `${root}/bin/${name}`)
  }
  fs.writeFileSync(`${root}/etc/passwd`, 'root:x:0:0:root:/:/bin/sh\n')
  fs.writeFileSync(`${root}/etc/group`, 'root:x:0:\n')
  tar(`${directory}/layer.tar`, root, ['.'])

  const diffId = createHash('sha256')
    .update(fs.readFileSync(`${directory}/layer.tar`))
    .digest('hex')
  const manifest = Object.entries(IMAGES).map(([name, command], index) => {
    const config = {
      architecture: 'amd64',
      os: 'linux',
      config: { Cmd: command, Env: ['PATH=/bin'], Labels: { name } },
      rootfs: { type: 'layers', diff_ids: [`sha256:${diffId}`] },
    }
    fs.writeFileSync(`${directory}/config-${index}.json`, JSON.stringify(config))
    return { Config: `config-${index}.json`, RepoTags: [name], Layers: ['layer.tar'] }
  })
  fs.writeFileSync(`${directory}/manifest.json`, JSON.stringify(manifest))
  const parts = ['manifest.json', 'layer.tar', ...manifest.map(({ Config }) => Config)]
  tar(`${directory}/images.tar`, directory, parts)
  return `${directory}/images.tar`
}

function tar(archive: string, directory: string, names: readonly string[]): void {
  execFileSync('tar', ['--numeric-owner', '--owner=0', '--group=0', '-cf', archive, '-C', directory, ...names])
}
