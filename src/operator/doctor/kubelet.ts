import type { Diagnosis } from '../../host/diagnosis.ts'
import { errorCode, type Host } from '../../host/host.ts'
import type { CheckFinding } from '../actions/document.ts'
import { findingsOf } from './findings.ts'
import { DEFAULT_PLUGIN_DIR, type KubeletArguments, kubeletArguments, pluginDirIn } from './kubelet-process.ts'
import { lookAtPath, writers } from './permissions.ts'

const { ok, warning, fault } = findingsOf('kubelet')
const DRIVER = 'modekeep~fs/fs'

/** @param executable this program's own file, to be compared with the installed one; undefined: run from its sources */
export function kubeletFindings(host: Host, diagnosis: Diagnosis, executable: string | undefined): CheckFinding[] {
  const found = kubelets(host)
  if (found.length === 0) {
    return [warning('no kubelet runs here', 'start kubelet, or run doctor where its processes are visible')]
  }
  return found.flatMap(({ pid, kind, directory, why }) => {
    const who = `${kind} (process ${pid})`
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

interface Kubelet {
  pid: string
  kind: KubeletArguments['kind']
  directory: string
  why: string
}

function kubelets(host: Host): Kubelet[] {
  return host.files
    .list('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const text = read(host, `/proc/${pid}/cmdline`)
      const found = text && kubeletArguments(text.replace(/\0$/, '').split('\0'))
      return found ? directoryOf(host, pid, found) : []
    })
}

function directoryOf(host: Host, pid: string, found: KubeletArguments): Kubelet[] {
  const { kind, pluginDir, config, configDir } = found
  const told = (directory: string, why: string) => [{ pid, kind, directory: directory.replace(/(?<=.)\/$/, ''), why }]
  if (pluginDir) return told(pluginDir, 'in its arguments')
  // Its root may be a container's. A later drop-in wins.
  const text = (path: string) => read(host, `/proc/${pid}/root${path}`) ?? read(host, path)
  const dropIns = [
    ...(configDir ? namesIn(host, pid, configDir) : []),
    ...(kind === 'kubelet' ? [] : namesIn(host, pid, `/var/lib/rancher/${kind}/agent/etc/kubelet.conf.d`)),
  ]
  for (const file of [...(config ? [config] : []), ...dropIns].reverse()) {
    const directory = pluginDirIn(text(file) ?? '')
    if (directory) return told(directory, file)
  }
  if (kind === 'kubelet') return told(DEFAULT_PLUGIN_DIR, "kubelet's default")
  const file = `/etc/rancher/${kind}/config.yaml`
  const named = /^[^#]*volume-plugin-dir=([^"',\s]+)/m.exec(text(file) ?? '')?.[1]
  if (named) return told(named, file)
  // rke2 starts a kubelet process of its own, which is the one to ask.
  return kind === 'rke2' ? [] : told(DEFAULT_PLUGIN_DIR, "kubelet's default")
}

function namesIn(host: Host, pid: string, directory: string): string[] {
  const names = listed(host, `/proc/${pid}/root${directory}`) ?? listed(host, directory) ?? []
  return names
    .filter((name) => name.endsWith('.conf'))
    .sort()
    .map((name) => `${directory}/${name}`)
}

function listed(host: Host, path: string): string[] | undefined {
  const names = host.files.list(path)
  return names.length === 0 ? undefined : names
}

/** A process may end meanwhile, and a file be unreadable. */
function read({ files }: Host, path: string): string | undefined {
  try {
    return files.read(path)
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}
