import { quoteValue } from '../../errors/refusal.ts'
import { MAX_SOCKET_NAME_BYTES } from '../../frontends/device-plugin/sockets.ts'
import { CSI_DRIVER_NAME } from '../../kernel/mount-table/kubelet-volume.ts'
import { MAX_SOCKET_PATH_BYTES } from '../../rpc/socket.ts'
import { NRI_SOCKET_PATH } from '../../state/process-records.ts'
import { readKubeletDirectory } from './operands.ts'
import type { VerbArguments, VerbForm } from './verb.ts'

/** Returns the length of the longest socket path of a driver below kubelet's directory. */
const measureLongestSocketPath = (name: string) =>
  Math.max(`/plugins_registry/${name}-reg.sock`.length, `/plugins/${name}/csi.sock`.length)

function refuseLongSocketDirectory(
  { given, faults, refuse }: VerbArguments,
  directory: string,
  socketBytes: number,
): void {
  if (faults.length > 0 || Buffer.byteLength(directory) + socketBytes <= MAX_SOCKET_PATH_BYTES) return
  const named = `--kubelet-dir ${quoteValue(given.get('kubelet-dir'))}`
  refuse(`${named} is too long for a socket in it`, `use a path of less bytes`)
}

export const csiVerb = {
  summary: 'serve kubelet as a CSI driver',
  text: [
    'Serves kubelet as a CSI driver, beside the FlexVolume driver or in its place: the same volumes, options ' +
      'and records. Kubelet finds it by a socket in plugins_registry. It ends on SIGTERM or SIGINT; what is just being ' +
      'mounted then goes on.',
    "It must run in kubelet's mount namespace, and on a node only one serves: another one waits until that ends. It " +
      'prints one JSON line for each event.',
  ],
  options: {
    'kubelet-dir': "kubelet's --root-dir (default: /var/lib/kubelet)",
    'driver-name': `the driver's name, in pods' volumes and the CSIDriver object (default: ${CSI_DRIVER_NAME})`,
    'node-id': "what kubelet's CSINode object calls the node (default: its host name)",
    'api-server': 'where the API server is: the CSIDriver object is read there, which must say podInfoOnMount: true',
    'api-access': 'the directory with the files token and ca.crt of a service account that may read that object',
    probe: 'serve nothing: ask the server that runs for an answer, and fail where none comes within 5 s',
    json: 'no effect: the output is JSON in any case',
  },
  examples: ['modekeep csi --kubelet-dir /var/lib/kubelet', 'modekeep csi --probe'],
  read(args: VerbArguments) {
    const { given, refuse } = args
    const directory = readKubeletDirectory(args)
    const name = given.get('driver-name') ?? CSI_DRIVER_NAME
    refuseLongSocketDirectory(args, directory, measureLongestSocketPath(name))
    const [server, access] = [given.get('api-server'), given.get('api-access')]
    if ((server === undefined) !== (access === undefined)) {
      refuse('--api-server and --api-access belong together', 'give both or none')
    }
    const api = server === undefined || access === undefined ? undefined : { server, directory: access }
    return { verb: 'csi' as const, api, directory, name, nodeId: given.get('node-id'), isProbe: given.has('probe') }
  },
} satisfies VerbForm

export const nriVerb = {
  summary: "show volumes of any driver to a pod's group, as the container runtime's NRI plugin",
  text: [
    'Shows volumes of any driver to the group that a pod asks for by the annotation modekeep/group: before the container ' +
      'runtime creates a container, each of its volumes is replaced by an idmapped clone, in a time that does not depend ' +
      'on the number of files. Nothing on disk changes. containerd asks it since 1.7 (on by default since 2.0), and CRI-O.',
    "It must run in kubelet's mount namespace, and on a node only one runs: another one waits until that ends. It connects " +
      'again whenever the runtime restarts, ends on SIGTERM or SIGINT, and prints one JSON line for each event.',
  ],
  options: {
    socket: `the container runtime's NRI socket (default: ${NRI_SOCKET_PATH})`,
    'cri-socket':
      "the runtime's CRI socket, asked for a pod's groups where NRI does not tell them (default: containerd's)",
    'kubelet-dir': "kubelet's --root-dir (default: /var/lib/kubelet)",
    'plugin-index': 'two digits: when the runtime asks it, among its plugins (default: 10)',
    probe: 'do nothing: look whether a plugin runs that the runtime knows, and fail where none does',
    json: 'no effect: the output is JSON in any case',
  },
  examples: ['modekeep nri', 'modekeep nri --probe'],
  read(args: VerbArguments) {
    const { given, refuse } = args
    const directory = readKubeletDirectory(args)
    const socket = given.get('socket') ?? NRI_SOCKET_PATH
    const criSocket = given.get('cri-socket')
    for (const [option, path] of [
      ['--socket', socket],
      ['--cri-socket', criSocket ?? ''],
    ] as const) {
      if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) continue
      refuse(
        `${option} ${quoteValue(path)} is too long for a socket`,
        `use a path of at most ${MAX_SOCKET_PATH_BYTES} bytes`,
      )
    }
    const index = given.get('plugin-index') ?? '10'
    return { verb: 'nri' as const, directory, socket, criSocket, index, isProbe: given.has('probe') }
  },
} satisfies VerbForm

export const devicePluginVerb = {
  summary: 'offer /dev/fuse to kubelet, for pods that run a FUSE daemon of their own',
  text: [
    'Offers /dev/fuse to kubelet as the resource modekeep/fuse, for pods that run a FUSE daemon of their own. It ends ' +
      'on SIGTERM or SIGINT.',
    'It waits for kubelet, registers again whenever kubelet restarts, and reports the devices as unhealthy while ' +
      '/dev/fuse does not open. It prints one JSON line for each event.',
  ],
  options: {
    devices: 'how many containers of the node may use the device at once (default: 100)',
    'kubelet-dir':
      'the directory that has device-plugins/kubelet.sock (default: /var/lib/kubelet, whatever ' +
      "kubelet's --root-dir says)",
    json: 'no effect: the output is JSON in any case',
  },
  examples: ['modekeep device-plugin --devices 50'],
  read(args: VerbArguments) {
    const { given } = args
    // The directory of kubelet.sock.
    const directory = `${readKubeletDirectory(args)}/device-plugins`
    refuseLongSocketDirectory(args, directory, MAX_SOCKET_NAME_BYTES + 1)
    const devices = Number(given.get('devices') ?? 100)
    return { verb: 'device-plugin' as const, devices, directory }
  },
} satisfies VerbForm
