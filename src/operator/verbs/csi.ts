import { quoted } from '../../errors/refusal.ts'
import { MAX_SOCKET_PATH } from '../../grpc/socket.ts'
import { CSI_DRIVER } from '../../mount-table/kubelet-volume.ts'
import type { VerbArguments, VerbForm } from './form.ts'
import { readKubeletDirectory } from './paths.ts'

/** Returns the length of the longest socket path of a driver below kubelet's directory. */
const measureLongestSocket = (name: string) =>
  Math.max(`/plugins_registry/${name}-reg.sock`.length, `/plugins/${name}/csi.sock`.length)

export const csi = {
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
    'driver-name': `the driver's name, in pods' volumes and the CSIDriver object (default: ${CSI_DRIVER})`,
    'node-id': "what kubelet's CSINode object calls the node (default: its host name)",
    'api-server': 'where the API server is: the CSIDriver object is read there, which must say podInfoOnMount: true',
    'api-access': 'the directory with the files token and ca.crt of a service account that may read that object',
    probe: 'serve nothing: ask the server that runs for an answer, and fail where none comes within 5 s',
    json: 'no effect: the output is JSON in any case',
  },
  examples: ['modekeep csi --kubelet-dir /var/lib/kubelet', 'modekeep csi --probe'],
  read(args: VerbArguments) {
    const { given, faults } = args
    const directory = readKubeletDirectory(args)
    const name = given.get('driver-name') ?? CSI_DRIVER
    if (faults.length === 0 && Buffer.byteLength(directory) + measureLongestSocket(name) > MAX_SOCKET_PATH) {
      const named = `--kubelet-dir ${quoted(given.get('kubelet-dir'))}`
      faults.push(`${named} is too long for a socket in it: use a path of less bytes`)
    }
    const [server, access] = [given.get('api-server'), given.get('api-access')]
    if ((server === undefined) !== (access === undefined)) {
      faults.push('--api-server and --api-access belong together: give both or none')
    }
    const api = server === undefined || access === undefined ? undefined : { server, directory: access }
    return { verb: 'csi' as const, api, directory, name, nodeId: given.get('node-id'), isProbe: given.has('probe') }
  },
} satisfies VerbForm
