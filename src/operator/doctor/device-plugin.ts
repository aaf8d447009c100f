import { explainRootOnly, FUSE_DEVICE } from '../../fuse-device/device-access.ts'
import { isPluginSocket } from '../../fuse-device/sockets.ts'
import type { Host } from '../../host/host.ts'
import { type CheckResult, ok, warning } from './findings.ts'
import { statPath } from './paths.ts'

// This directory does not depend on kubelet's --root-dir.
const DEVICE_PLUGINS = '/var/lib/kubelet/device-plugins'

/** Checks /dev/fuse if modekeep's device plugin has run here. A FUSE volume's own daemon runs on the node as root. */
export function* checkFuseDevice(host: Pick<Host, 'files' | 'inodes'>): Generator<CheckResult> {
  if (!host.files.list(DEVICE_PLUGINS).some(isPluginSocket)) return
  const device = statPath(host, FUSE_DEVICE)
  // The plugin itself reports a missing device to kubelet. A container sees the device only if it was given it.
  if (device === undefined) return
  const text = explainRootOnly(FUSE_DEVICE, device.mode)
  const remedy = `chmod 0666 ${FUSE_DEVICE}, and a udev rule or a line for systemd-tmpfiles that keeps it so (docs/fuse-in-pods.md)`
  yield text === undefined ? ok(`every pod that is given ${FUSE_DEVICE} can open it`) : warning(text, remedy)
}
