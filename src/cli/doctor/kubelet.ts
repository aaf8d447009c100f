import { explainRootOnly, FUSE_DEVICE } from '../../fuse-device/decide.ts'
import { isPluginSocket } from '../../fuse-device/sockets.ts'
import type { Host } from '../../host/host.ts'
import type { Diagnosis } from '../../host/linux/diagnosis.ts'
import { findKubelets } from '../node-state/kubelets.ts'
import { type CheckResult, fault, ok, warning } from './findings.ts'
import { checkWriters, statPath } from './paths.ts'

/** @param executable this program's own file, compared with the installed one; undefined if it runs from its sources */
export function* checkKubelets(
  host: Host,
  diagnosis: Diagnosis,
  executable: string | undefined,
): Generator<CheckResult> {
  const found = findKubelets(host.files)
  if (found.length === 0)
    yield warning('no kubelet runs here', 'start kubelet, or run doctor where its processes are visible')
  for (const { pid, kind, directory, why } of found) {
    const label = `${kind} (process ${pid})`
    if (directory === undefined) {
      yield fault(`${label}: ${why}`, 'call this as root, where that file can be read')
      continue
    }
    const at = `${label} uses the plugin directory ${directory} (${why})`
    const install = `./install.sh --plugin-dir ${directory}`
    if (statPath(host, directory) === undefined) yield fault(`${at}, which does not exist`, install)
    else yield* [ok(at), ...checkDriver(host, diagnosis, `${directory}/modekeep~fs/fs`, install, executable)]
  }
}

function checkDriver(
  host: Host,
  { isSameFile }: Diagnosis,
  driver: string,
  install: string,
  executable?: string,
): CheckResult[] {
  const stat = statPath(host, driver)
  if (stat === undefined) return [fault(`${driver} is missing: kubelet does not know modekeep/fs`, install)]
  if ((stat.mode & 0o111) === 0) return [fault(`${driver} is not executable`, install)]
  const faults = checkWriters(host, 'the driver', driver)
  if (faults.length > 0) return faults
  if (executable === undefined) return [ok(`${driver} is there`)]
  return isSameFile(driver, executable)
    ? [ok(`${driver} is this version`)]
    : [warning(`${driver} is another version than ${executable}`, `${install}, or call ${driver} doctor`)]
}

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
