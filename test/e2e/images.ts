import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { Architecture } from '../../scripts/build/runtime.ts'
import { type ContainerImage, createDockerArchive } from '../../scripts/image/archive.ts'
import { createShellRoot } from '../../scripts/image/shell.ts'
import type { TarEntry } from '../../src/cli/output/tar.ts'
import type { Cluster } from '../cluster/plane/cluster.ts'
import { importImages } from '../kubelet/node/containerd.ts'
import type { World } from './world.ts'

/** Of 1.20, whose suite cannot say it. */
const OF_1_20 = [
  'docker.io/library/busybox:1.29',
  'k8s.gcr.io/e2e-test-images/agnhost:2.21',
  'k8s.gcr.io/pause:3.2',
  // Of the spec that runs a script of the volume, for its shell.
  'docker.io/library/nginx:1.14-alpine',
  // multiVolume has it in some pods, for its shell.
  'k8s.gcr.io/build-image/debian-iptables:buster-v1.3.0',
]
const SLEEP = ['/bin/sleep', '1000000']

/** Gives the node what the suite's pods run, under the names of a registry that is not in reach. */
export function giveImages({ suite, place }: World, { atLeast, busybox }: Cluster): void {
  const all = atLeast('1.22') ? listed(suite['e2e.test']) : OF_1_20
  const root = createShellRoot(busybox)
  const agnhost: TarEntry = { path: 'agnhost', bytes: fs.readFileSync(suite.agnhost), mode: 0o755 }
  const plain = all
    .filter((name) => /\/(busybox|pause|debian-iptables|distroless-iptables|glibc-dns-testing|nginx):/.test(name))
    .map((name) => ({ name, command: SLEEP }))
  const tools = all
    .filter((name) => /\/agnhost:/.test(name))
    .map((name) => ({ name, command: ['pause'], entrypoint: ['/agnhost'] }))
  give(`${place}/plain.tar`, plain, root)
  give(`${place}/tools.tar`, tools, [...root, agnhost])
}

function give(archive: string, images: readonly ContainerImage[], files: readonly TarEntry[]): void {
  fs.writeFileSync(archive, createDockerArchive(images, files, process.arch as Architecture))
  importImages(archive)
  fs.rmSync(archive)
}

const listed = (suite: string) =>
  execFileSync(suite, ['--list-images'], { encoding: 'utf8' }).split('\n').filter(Boolean)
