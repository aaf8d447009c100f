import { quoted } from '../../errors/refusal.ts'
import { MAX_SOCKET_NAME } from '../../fuse-device/sockets.ts'
import { MAX_SOCKET_PATH } from '../../grpc/socket.ts'
import type { VerbArguments, VerbForm } from './form.ts'
import { readKubeletDirectory } from './paths.ts'

export const devicePlugin = {
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
    const { given, faults } = args
    // The directory of kubelet.sock.
    const directory = `${readKubeletDirectory(args)}/device-plugins`
    const longest = MAX_SOCKET_PATH - MAX_SOCKET_NAME - 1
    if (faults.length === 0 && Buffer.byteLength(directory) > longest) {
      const named = `--kubelet-dir ${quoted(given.get('kubelet-dir'))}`
      faults.push(`${named} is too long for a socket in it: use a path of less bytes`)
    }
    const devices = Number(given.get('devices') ?? 100)
    return { verb: 'device-plugin' as const, devices, directory }
  },
} satisfies VerbForm
