import { basename } from 'node:path'
import { parseProcessStatus } from '../../kernel/linux/processes.ts'
import { tolerateSystemErrors } from '../../kernel/system-error.ts'
import type { TrustedFiles } from '../../kernel/trusted-files.ts'

/** Kubelet's own default (kubernetes cmd/kubelet/app/options). */
export const DEFAULT_PLUGIN_DIR = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'

/** A running kubelet, and the directory in which it searches for volume plugins. */
export interface RunningKubelet {
  pid: string
  kind: 'kubelet' | 'k3s' | 'rke2'
  /** The plugin directory without a trailing slash; undefined if it could not be determined. */
  directory: string | undefined
  /** Source of the directory, or the reason why it is unknown. */
  why: string
  /** Neither arguments nor files name a directory, so the default is assumed. */
  isDefault?: boolean
}

type KubeletDiscoveryFiles = Pick<TrustedFiles, 'list' | 'readForeign' | 'stat'>
/** Files by the paths that a process uses. */
type ProcessFiles = Pick<KubeletDiscoveryFiles, 'list' | 'readForeign'>

/**
 * Finds the kubelets among the processes of `proc`, in the order of their ids. Processes of users other than root are
 * ignored, and an executable that such users can write is not trusted.
 * @param root prefix of each path that a process names, unless the process has the file in a root of its own
 * @param trust accepts a process whose executable cannot be seen. For a comparison only, which chooses no directory
 */
export function findKubelets(
  files: KubeletDiscoveryFiles,
  proc = '/proc',
  root = '',
  trust?: 'an unseen executable is believed',
): RunningKubelet[] {
  return (tolerateSystemErrors(() => files.list(proc)) ?? [])
    .filter((name) => /^\d+$/.test(name))
    .sort((one, other) => Number(one) - Number(other))
    .flatMap((pid) => {
      const readProcessFile = (file: string) =>
        tolerateSystemErrors(() => files.readForeign(`${proc}/${pid}/${file}`)) ?? ''
      // Any user can start a process with kubelet's arguments. It must not decide where root installs a program.
      if (!hasKubeletPrivileges(readProcessFile('status'))) return []
      const found = parseKubeletArguments(readProcessFile('cmdline').replace(/\0$/, '').split('\0'))
      if (found === undefined) return []
      const executable = tolerateSystemErrors(() => files.stat(`${proc}/${pid}/exe`))
      const why = executable === undefined && trust ? undefined : findKubeletExecutableFault(executable)
      if (why !== undefined) return [{ pid, kind: found.kind, directory: undefined, why }]
      return resolvePluginDirectory(createProcessFiles(files, [`${proc}/${pid}/root`, root]), pid, found)
    })
}

// include/uapi/linux/capability.h
const CAP_SYS_ADMIN = 1n << 21n

/** A kubelet is root with all its user ids, and may mount. */
function hasKubeletPrivileges(status: string): boolean {
  const { userIds, capabilities } = parseProcessStatus(status)
  return userIds.length > 0 && userIds.every((uid) => uid === 0) && (capabilities & CAP_SYS_ADMIN) !== 0n
}

const GROUP_OR_OTHERS_WRITE_BITS = 0o022

function findKubeletExecutableFault(stat: ReturnType<KubeletDiscoveryFiles['stat']>): string | undefined {
  if (stat === undefined) return 'its executable cannot be seen'
  const { uid, mode } = stat
  // A non-root installer also trusts executables of its own, as for configurations.
  if ((uid === 0 || uid === process.geteuid?.()) && (mode & GROUP_OR_OTHERS_WRITE_BITS) === 0) return undefined
  return `its executable can be written by others than root (uid ${uid}, mode ${(mode & 0o7777).toString(8)}), so it is not believed`
}

/** Resolves the directory like kubelet: a flag precedes its files, and a later file precedes an earlier one. */
function resolvePluginDirectory(
  view: ProcessFiles,
  pid: string,
  { kind, pluginDir, config, configDir }: KubeletArguments,
): RunningKubelet[] {
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
    findDirectoryInLastFile(view, configurations, parsePluginDir) ??
    (kind === 'kubelet' ? undefined : findDistributionPluginDirectory(view, kind))
  if (found) return createKubelets(...found)
  // rke2 starts a separate kubelet process, which names the directory.
  if (kind === 'rke2') return []
  return createKubelets("says nothing: the kubelet's default", DEFAULT_PLUGIN_DIR).map((one) => ({
    ...one,
    isDefault: true,
  }))
}

/** k3s and rke2 hide their arguments. Those in their unit precede those in their configuration. */
function findDistributionPluginDirectory(view: ProcessFiles, kind: 'k3s' | 'rke2') {
  const own = `/etc/rancher/${kind}/config.yaml`
  const units = listMatchingFiles(view, '/etc/systemd/system', new RegExp(`^${kind}.*\\.service$`))
  const dropIns = listMatchingFiles(view, `/var/lib/rancher/${kind}/agent/etc/kubelet.conf.d`, /\.conf$/)
  const handedOn = findDirectoryInLastFile(
    view,
    [own, ...listMatchingFiles(view, `${own}.d`, /\.yaml$/), ...units],
    parseForwardedPluginDir,
  )
  return handedOn ?? findDirectoryInLastFile(view, dropIns, parsePluginDir)
}

function findDirectoryInLastFile(
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

/** Reads files from the first root that has them. An unreadable file counts as missing, as a process may end meanwhile. */
function createProcessFiles(files: ProcessFiles, roots: readonly string[]): ProcessFiles {
  const first = <T>(path: string, look: (path: string) => T | undefined) =>
    roots.map((root) => tolerateSystemErrors(() => look(root + path))).find((found) => found !== undefined)
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

/** @returns the arguments that determine the volume plugin directory; undefined if the process is no kubelet */
export function parseKubeletArguments(argv: readonly string[]) {
  const kind = parseKubeletKind(argv)
  if (kind === undefined) return undefined
  const given = kind === 'kubelet' ? parseCommandLineFlags(argv) : parseForwardedFlags(argv)
  const flag = (name: string) => given.findLast(([key]) => key.replaceAll('_', '-') === name)?.[1]
  return { kind, pluginDir: flag('volume-plugin-dir'), config: flag('config'), configDir: flag('config-dir') }
}

function parseKubeletKind([program = '', first = '']: readonly string[]): RunningKubelet['kind'] | undefined {
  // k3s and rke2 write "/path/k3s server" over their argument list.
  const words = `${basename(program)} ${first}`
  if (/^(hyperkube )?kubelet( |$)/.test(words)) return 'kubelet'
  return /^(k3s|rke2)[ -](agent|server)( |$)/.exec(words)?.[1] as 'k3s' | 'rke2' | undefined
}

/** Parses `--key=value` and `--key value`. */
function parseCommandLineFlags(argv: readonly string[]): [string, string][] {
  return argv.flatMap((word, index): [string, string][] => {
    const [, key, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
    return key === undefined ? [] : [[key, value ?? argv[index + 1] ?? '']]
  })
}

/** Parses the flags that k3s passes on to kubelet: `--kubelet-arg key=value`. */
function parseForwardedFlags(argv: readonly string[]): [string, string][] {
  return parseCommandLineFlags(argv)
    .filter(([key]) => key === 'kubelet-arg')
    .flatMap(([, argument]) => parseCommandLineFlags([`--${argument.replace(/^-+/, '')}`]))
}

/** Parses volumePluginDir of a KubeletConfiguration, YAML or JSON; undefined if it has none. */
export function parsePluginDir(configuration: string): string | undefined {
  let found: string | undefined
  for (const line of configuration.split(/\r?\n/)) {
    const match = /^([^#]*?)["']?volumePluginDir["']?[ \t]*:[ \t]*(?:"([^"]*)"|'([^']*)'|([^,} \t#]*))/.exec(line)
    if (match && /(^|[{, \t])$/.test(match[1] ?? '')) found = (match[2] ?? match[3] ?? match[4]) || found
  }
  return found
}

/** Parses the directory that k3s or rke2 passes on by --kubelet-arg, in a unit or configuration file. The last one counts. */
function parseForwardedPluginDir(text: string): string | undefined {
  return [...text.matchAll(/^[^#\n]*volume-plugin-dir=([^"',\s]+)/gm)].at(-1)?.[1]
}
