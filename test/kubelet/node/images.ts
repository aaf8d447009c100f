import * as fs from 'node:fs'
import type { Architecture } from '../../../scripts/build/runtime.ts'
import { createDockerArchive } from '../../../scripts/image/archive.ts'
import { createShellRoot } from '../../../scripts/image/shell.ts'

export const IMAGE = 'modekeep.test/busybox:1'
export const PAUSE = 'modekeep.test/pause:1'

// The container runtime kills a sandbox without asking, so its process need not listen.
const IMAGES = [IMAGE, PAUSE].map((name) => ({ name, command: ['/bin/sleep', '1000000'], labels: { name } }))

/** Makes a docker-archive with both images, of one layer: a static busybox and its links. Returns its path. */
export function makeImages(directory: string, busybox: string): string {
  fs.mkdirSync(directory, { recursive: true })
  fs.writeFileSync(
    `${directory}/images.tar`,
    createDockerArchive(IMAGES, createShellRoot(busybox), process.arch as Architecture),
  )
  return `${directory}/images.tar`
}
