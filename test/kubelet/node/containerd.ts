import * as fs from 'node:fs'
import { runCommand } from '../../../scripts/fetch/command.ts'
import type { World } from '../world.ts'
import { Daemon } from './daemon.ts'
import { IMAGE, makeImages, PAUSE } from './images.ts'
import type { Network } from './network.ts'
import { until } from './until.ts'

export const SOCKET = '/run/containerd/containerd.sock'

/** More of its configuration, for a containerd from 1.7 on, which has it off before 2.0: it asks plugins. */
export const NRI = `
[plugins."io.containerd.nri.v1.nri"]
  disable = false
`

const configuration = (directory: string, runc: string, network: Network | undefined, more: string) => `
version = 2
root = "${directory}/root"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "${SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "${runc}"
${network === undefined ? '' : ofNetwork(network)}${more}`

const ofNetwork = ({ plugins, configuration }: Network) => `
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${plugins}"
    conf_dir = "${configuration}"
`

/** Starts containerd and gives it the two images. @param more of its configuration */
export async function startContainerd(
  { place, runtime }: Pick<World, 'place' | 'runtime'>,
  logs: string,
  network?: Network,
  more = '',
): Promise<Daemon> {
  const directory = `${place}/containerd`
  fs.mkdirSync(directory, { recursive: true })
  const runc = runtime.path
    .split(':')
    .map((bin) => `${bin}/runc`)
    .find((path) => fs.existsSync(path))
  if (runc === undefined) throw new Error(`no runc in ${runtime.path}`)
  fs.writeFileSync(`${directory}/config.toml`, configuration(directory, runc, network, more))
  const command = ['containerd', '--config', `${directory}/config.toml`]
  const containerd = new Daemon('containerd', logs, command, process.env)
  containerd.start()
  await until('containerd answers', () => {
    containerd.mustRun()
    return ctr('version') !== ''
  })
  const images = makeImages(`${directory}/images`, runtime.busybox)
  importImages(images)
  for (const name of [IMAGE, PAUSE]) if (!ctr('images', 'ls', '-q').includes(name)) throw new Error(`no image ${name}`)
  return containerd
}

/** Gives containerd the images of an archive. */
export function importImages(archive: string): void {
  // Otherwise a newer client has the server do it, which unpacks for its own default snapshotter alone. One of 1.6 knows no other way.
  const locally = ctr('images', 'import', '--help').includes('--local') ? ['--local'] : []
  ctr('images', 'import', ...locally, '--snapshotter', 'native', archive)
}

/** containerd's own client, on the containers of kubelet. @throws {Error} with its last words */
export function ctr(...args: string[]): string {
  return runCommand('ctr', ['--address', SOCKET, '--namespace', 'k8s.io', ...args])
}
