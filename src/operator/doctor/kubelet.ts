import type { Diagnosis } from '../../host/diagnosis.ts'
import type { Host } from '../../host/host.ts'
import { kubelets } from '../kubelet/discovery.ts'
import { type CheckFinding, findingsOf } from './findings.ts'
import { lookAtPath, writers } from './permissions.ts'

const { ok, warning, fault } = findingsOf('kubelet')
const DRIVER = 'modekeep~fs/fs'

/** @param executable this program's own file, to be compared with the installed one; undefined: run from its sources */
export function kubeletFindings(host: Host, diagnosis: Diagnosis, executable: string | undefined): CheckFinding[] {
  const found = kubelets(host.files)
  if (found.length === 0) {
    return [warning('no kubelet runs here', 'start kubelet, or run doctor where its processes are visible')]
  }
  return found.flatMap(({ pid, kind, directory, why }) => {
    const who = `${kind} (process ${pid})`
    if (directory === undefined) return [fault(`${who}: ${why}`, 'call this as root, where that file can be read')]
    const at = `${who} uses the plugin directory ${directory} (${why})`
    if (lookAtPath(host, directory) === undefined) {
      return [fault(`${at}, which does not exist`, `./install.sh --plugin-dir ${directory}`)]
    }
    return [ok(at), ...driverFindings(host, diagnosis, `${directory}/${DRIVER}`, executable)]
  })
}

function driverFindings(
  host: Host,
  diagnosis: Diagnosis,
  driver: string,
  executable: string | undefined,
): CheckFinding[] {
  const stat = lookAtPath(host, driver)
  const install = `./install.sh --plugin-dir ${driver.slice(0, -DRIVER.length - 1)}`
  if (stat === undefined) return [fault(`${driver} is missing: kubelet does not know modekeep/fs`, install)]
  if ((stat.mode & 0o111) === 0) return [fault(`${driver} is not executable`, install)]
  const others = writers(host, driver)
  if (others.length > 0) {
    return others.map((path) =>
      fault(`users other than root can replace the driver through ${path}`, `chown root ${path}; chmod go-w ${path}`),
    )
  }
  if (executable === undefined) return [ok(`${driver} is there`)]
  return diagnosis.isSameFile(driver, executable)
    ? [ok(`${driver} is this version`)]
    : [warning(`${driver} is another version than ${executable}`, `${install}, or call ${driver} doctor`)]
}
