import { basename } from 'node:path'
import { unlessRefused } from '../../host/file-error.ts'
import { processStatus } from '../../host/process-status.ts'
import type { TrustedFiles } from '../../host/trusted-files.ts'

/** Kubelet's own default (kubernetes cmd/kubelet/app/options). */
export const DEFAULT_PLUGIN_DIR = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'

/** A kubelet that runs, and where it looks for volume plugins. */
export interface Kubelet {
  pid: string
  kind: 'kubelet' | 'k3s' | 'rke2'
  /** Without a slash at its end; undefined where it cannot be told. */
  directory: string | undefined
  /** What says so, or why nothing does. */
  why: string
  /** Nothing was found that names a directory, so it is taken for the default one. */
  isDefault?: boolean
}

type DiscoveryFiles = Pick<TrustedFiles, 'list' | 'readForeign' | 'stat'>
/** Files as a process names them. */
type ProcessFiles = Pick<DiscoveryFiles, 'list' | 'readForeign'>

/**
 * Finds the kubelets among the processes of `proc`, in the order of their ids. What others than root run is none, and
 * one that others than root can write is not asked.
 * @param root before the path of each file that a process names, unless that process sees the file in a root of its own
 * @param trust whether to ask one whose executable cannot be seen: for a comparison, which chooses no directory
 */
export function findKubelets(
  files: DiscoveryFiles,
  proc = '/proc',
  root = '',
  trust?: 'an unseen executable is believed',
): Kubelet[] {
  return (unlessRefused(() => files.list(proc)) ?? [])
    .filter((name) => /^\d+$/.test(name))
    .sort((one, other) => Number(one) - Number(other))
    .flatMap((pid) => {
      const readProcessFile = (file: string) => unlessRefused(() => files.readForeign(`${proc}/${pid}/${file}`)) ?? ''
      // Anybody can start a process with a kubelet's arguments: it has no say in where root installs a program.
      if (!mayBeKubelet(readProcessFile('status'))) return []
      const found = parseKubeletArguments(readProcessFile('cmdline').replace(/\0$/, '').split('\0'))
      if (found === undefined) return []
      const executable = unlessRefused(() => files.stat(`${proc}/${pid}/exe`))
      const why = executable === undefined && trust ? undefined : findExecutableFault(executable)
      if (why !== undefined) return [{ pid, kind: found.kind, directory: undefined, why }]
      return resolvePluginDirectory(createProcessFiles(files, [`${proc}/${pid}/root`, root]), pid, found)
    })
}

// include/uapi/linux/capability.h
const CAP_SYS_ADMIN = 1n << 21n

/** A kubelet is root with all its user ids, and may mount. */
function mayBeKubelet(status: string): boolean {
  const { userIds, capabilities } = processStatus(status)
  return userIds.length > 0 && userIds.every((uid) => uid === 0) && (capabilities & CAP_SYS_ADMIN) !== 0n
}

const OTHERS_WRITE = 0o022

function findExecutableFault(stat: ReturnType<DiscoveryFiles['stat']>): string | undefined {
  if (stat === undefined) return 'its executable cannot be seen'
  const { uid, mode } = stat
  // As a configuration: who installs without being root is asked about his own.
  if ((uid === 0 || uid === process.geteuid?.()) && (mode & OTHERS_WRITE) === 0) return undefined
  return `its executable can be written by others than root (uid ${uid}, mode ${(mode & 0o7777).toString(8)}), so it is not believed`
}

/** Kubelet gives a flag precedence over its files, and a later file over an earlier one. */
function resolvePluginDirectory(
  view: ProcessFiles,
  pid: string,
  { kind, pluginDir, config, configDir }: KubeletArguments,
): Kubelet[] {
  const createKubelets = (why: string, directory?: string) => [
    { pid, kind, directory: directory?.replace(/(?<=.)\/$/, ''), why },
  ]
  if (pluginDir) return createKubelets('volume-plugin-dir in its arguments', pluginDir)
  const configurations = [
    ...(config ? [config] : []),
    ...(configDir ? listMatchingFiles(view, configDir, /\.conf$/) : []),
  ]
  const unread = configurations.find((file) => view.readForeign(file) === undefined)
  if (unread)
    return createKubelets(`cannot read its configuration ${unread}: it has to be a regular file of at most 1 MiB`)
  const found =
    findInLastFile(view, configurations, parsePluginDir) ??
    (kind === 'kubelet' ? undefined : findDistributionDirectory(view, kind))
  if (found) return createKubelets(...found)
  // rke2 starts a kubelet process of its own, which is the one to ask.
  if (kind === 'rke2') return []
  return createKubelets("says nothing: the kubelet's default", DEFAULT_PLUGIN_DIR).map((one) => ({
    ...one,
    isDefault: true,
  }))
}

/** k3s and rke2 hide their arguments: those of their unit precede those of their configuration. */
function findDistributionDirectory(view: ProcessFiles, kind: 'k3s' | 'rke2') {
  const own = `/etc/rancher/${kind}/config.yaml`
  const units = listMatchingFiles(view, '/etc/systemd/system', new RegExp(`^${kind}.*\\.service$`))
  const dropIns = listMatchingFiles(view, `/var/lib/rancher/${kind}/agent/etc/kubelet.conf.d`, /\.conf$/)
  const handedOn = findInLastFile(
    view,
    [own, ...listMatchingFiles(view, `${own}.d`, /\.yaml$/), ...units],
    parseForwardedPluginDir,
  )
  return handedOn ?? findInLastFile(view, dropIns, parsePluginDir)
}

function findInLastFile(
  view: ProcessFiles,
  paths: readonly string[],
  directoryIn: (text: string) => string | undefined,
): [file: string, directory: string] | undefined {
  for (const file of paths.toReversed()) {
    const directory = directoryIn(view.readForeign(file) ?? '')
    if (directory) return [file, directory]
  }
  return undefined
}

function listMatchingFiles(view: ProcessFiles, directory: string, form: RegExp): string[] {
  return view
    .list(directory)
    .filter((name) => form.test(name))
    .sort()
    .map((name) => `${directory}/${name}`)
}

/** Files as the first of several roots shows them. What cannot be read is not there: a process may end meanwhile. */
function createProcessFiles(files: ProcessFiles, roots: readonly string[]): ProcessFiles {
  const first = <T>(path: string, look: (path: string) => T | undefined) =>
    roots.map((root) => unlessRefused(() => look(root + path))).find((found) => found !== undefined)
  return {
    readForeign: (path) => first(path, files.readForeign),
    list: (path) =>
      first(path, (place) => {
        const names = files.list(place)
        return names.length > 0 ? names : undefined
      }) ?? [],
  }
}

type KubeletArguments = NonNullable<ReturnType<typeof parseKubeletArguments>>

/** @returns what the arguments of one process say of its volume plugin directory, undefined where it is no kubelet */
export function parseKubeletArguments(argv: readonly string[]) {
  const kind = parseKubeletKind(argv)
  if (kind === undefined) return undefined
  const given = kind === 'kubelet' ? parseFlags(argv) : parseForwardedFlags(argv)
  const flag = (name: string) => given.findLast(([key]) => key.replaceAll('_', '-') === name)?.[1]
  return { kind, pluginDir: flag('volume-plugin-dir'), config: flag('config'), configDir: flag('config-dir') }
}

function parseKubeletKind([program = '', first = '']: readonly string[]): Kubelet['kind'] | undefined {
  // k3s and rke2 write "/path/k3s server" over their argument list.
  const words = `${basename(program)} ${first}`
  if (/^(hyperkube )?kubelet( |$)/.test(words)) return 'kubelet'
  return /^(k3s|rke2)[ -](agent|server)( |$)/.exec(words)?.[1] as 'k3s' | 'rke2' | undefined
}

/** `--key=value` and `--key value`. */
function parseFlags(argv: readonly string[]): [string, string][] {
  return argv.flatMap((word, index): [string, string][] => {
    const [, key, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
    return key === undefined ? [] : [[key, value ?? argv[index + 1] ?? '']]
  })
}

/** k3s hands on `--kubelet-arg key=value`. */
function parseForwardedFlags(argv: readonly string[]): [string, string][] {
  return parseFlags(argv)
    .filter(([key]) => key === 'kubelet-arg')
    .flatMap(([, argument]) => parseFlags([`--${argument.replace(/^-+/, '')}`]))
}

/** The volumePluginDir of a KubeletConfiguration, YAML or JSON; undefined where it says none. */
export function parsePluginDir(configuration: string): string | undefined {
  let found: string | undefined
  for (const line of configuration.split(/\r?\n/)) {
    const match = /^([^#]*?)["']?volumePluginDir["']?[ \t]*:[ \t]*(?:"([^"]*)"|'([^']*)'|([^,} \t#]*))/.exec(line)
    if (match && /(^|[{, \t])$/.test(match[1] ?? '')) found = (match[2] ?? match[3] ?? match[4]) || found
  }
  return found
}

/** What k3s and rke2 hand on as --kubelet-arg: in a unit file or a configuration of theirs. The last is in force. */
function parseForwardedPluginDir(text: string): string | undefined {
  return [...text.matchAll(/^[^#\n]*volume-plugin-dir=([^"',\s]+)/gm)].at(-1)?.[1]
}
