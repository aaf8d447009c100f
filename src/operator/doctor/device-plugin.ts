import { explainRootOnly, FUSE_DEVICE } from '../../fuse-device/device-access.ts'
import { isPluginSocket } from '../../fuse-device/sockets.ts'
import type { Host } from '../../host/host.ts'
import { type CheckResult, ok, warning } from './findings.ts'
import { statPath } from './paths.ts'

// Kubelet's --root-dir does not move it.
const DEVICE_PLUGINS = '/var/lib/kubelet/device-plugins'

/** Only where a device plugin of modekeep's has been at work: a FUSE volume's daemon runs on the node, as root. */
export function* checkFuseDevice(host: Pick<Host, 'files' | 'inodes'>): Generator<CheckResult> {
  if (!host.files.list(DEVICE_PLUGINS).some(isPluginSocket)) return
  const device = statPath(host, FUSE_DEVICE)
  // What the plugin cannot open it reports to kubelet. A container has the device only if it is given it.
  if (device === undefined) return
  const text = explainRootOnly(FUSE_DEVICE, device.mode)
  const remedy = `chmod 0666 ${FUSE_DEVICE}, and a udev rule or a line for systemd-tmpfiles that keeps it so (docs/fuse-in-pods.md)`
  yield text === undefined ? ok(`every pod that is given ${FUSE_DEVICE} can open it`) : warning(text, remedy)
}
