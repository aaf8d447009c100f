import { quoted } from '../../errors/refusal.ts'
import { MAX_SOCKET_PATH } from '../../grpc/socket.ts'
import { NRI_SOCKET } from '../../store/server-records.ts'
import type { VerbArguments, VerbForm } from './form.ts'
import { readKubeletDirectory } from './paths.ts'

export const nri = {
  summary: "show volumes of any driver to a pod's group, as the container runtime's NRI plugin",
  text: [
    'Shows volumes of any driver to the group that a pod asks for by the annotation modekeep/group: before the container ' +
      'runtime creates a container, each of its volumes is replaced by an idmapped clone, in a time that does not depend ' +
      'on the number of files. Nothing on disk changes. containerd asks it since 1.7 (on by default since 2.0), and CRI-O.',
    "It must run in kubelet's mount namespace, and on a node only one runs: another one waits until that ends. It connects " +
      'again whenever the runtime restarts, ends on SIGTERM or SIGINT, and prints one JSON line for each event.',
  ],
  options: {
    socket: `the container runtime's NRI socket (default: ${NRI_SOCKET})`,
    'cri-socket':
      "the runtime's CRI socket, asked for a pod's groups where NRI does not tell them (default: containerd's)",
    'kubelet-dir': "kubelet's --root-dir (default: /var/lib/kubelet)",
    'plugin-index': 'two digits: when the runtime asks it, among its plugins (default: 10)',
    probe: 'do nothing: look whether a plugin runs that the runtime knows, and fail where none does',
    json: 'no effect: the output is JSON in any case',
  },
  examples: ['modekeep nri', 'modekeep nri --probe'],
  read(args: VerbArguments) {
    const { given, faults } = args
    const directory = readKubeletDirectory(args)
    const socket = given.get('socket') ?? NRI_SOCKET
    const criSocket = given.get('cri-socket')
    for (const [option, path] of [
      ['--socket', socket],
      ['--cri-socket', criSocket ?? ''],
    ] as const) {
      if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) continue
      faults.push(`${option} ${quoted(path)} is too long for a socket: use a path of at most ${MAX_SOCKET_PATH} bytes`)
    }
    const index = given.get('plugin-index') ?? '10'
    return { verb: 'nri' as const, directory, socket, criSocket, index, isProbe: given.has('probe') }
  },
} satisfies VerbForm
