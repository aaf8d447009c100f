import { LONGEST_NAME } from '../../fuse-device/sockets.ts'
import { LONGEST_PATH } from '../../grpc/socket.ts'
import { quoted } from '../../refusal/refusal.ts'
import type { Arguments, VerbForm } from './form.ts'
import { kubeletDirectory } from './kubelet-directory.ts'

export interface PluginCommand {
  verb: 'device-plugin'
  /** How many containers may have the device at once. */
  devices: number
  /** Where kubelet.sock is. */
  directory: string
}

const DEFAULT_DEVICES = 100

export const devicePlugin: VerbForm<PluginCommand> = {
  operands: '',
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
  read: (args) => ({
    verb: 'device-plugin',
    devices: Number(args.given.get('devices') ?? DEFAULT_DEVICES),
    directory: socketsOf(args),
  }),
}

function socketsOf({ given, faults }: Arguments): string {
  const directory = `${kubeletDirectory(given)}/device-plugins`
  const longest = LONGEST_PATH - LONGEST_NAME - 1
  if (faults.length === 0 && Buffer.byteLength(directory) > longest) {
    faults.push(
      `--kubelet-dir ${quoted(given.get('kubelet-dir'))} is too long for a socket in it: use a path of less bytes`,
    )
  }
  return directory
}
