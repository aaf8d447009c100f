/** What a kubelet's command line says of its volume plugin directory. */
export interface KubeletArguments {
  kind: 'kubelet' | 'k3s' | 'rke2'
  pluginDir: string | undefined
  config: string | undefined
  configDir: string | undefined
}

/** Kubelet's own default (kubernetes cmd/kubelet/app/options). */
export const DEFAULT_PLUGIN_DIR = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'

const KEYS = ['volume-plugin-dir', 'config', 'config-dir'] as const

/** @returns what the arguments of one process say, undefined where it is no kubelet */
export function kubeletArguments(argv: readonly string[]): KubeletArguments | undefined {
  const kind = kindOf(argv)
  if (kind === undefined) return undefined
  const flags = new Map<string, string>()
  for (const [key, value] of kind === 'kubelet' ? pairs(argv) : forwarded(argv)) {
    const name = key.replaceAll('_', '-')
    if ((KEYS as readonly string[]).includes(name)) flags.set(name, value)
  }
  return {
    kind,
    pluginDir: flags.get('volume-plugin-dir'),
    config: flags.get('config'),
    configDir: flags.get('config-dir'),
  }
}

function kindOf([program = '', first]: readonly string[]): KubeletArguments['kind'] | undefined {
  // k3s and rke2 write "/path/k3s server" over their argument list.
  const titled = /(^|\/)(k3s|rke2)[ -](agent|server)$/.exec(program)?.[2]
  if (titled === 'k3s' || titled === 'rke2') return titled
  const name = program.slice(program.lastIndexOf('/') + 1)
  if (name === 'kubelet' || (name === 'hyperkube' && first === 'kubelet')) return 'kubelet'
  if (name === 'k3s' || name === 'rke2') return first === 'agent' || first === 'server' ? name : undefined
  return undefined
}

/** `--key=value` and `--key value`. */
function pairs(argv: readonly string[]): [string, string][] {
  return argv.flatMap((word, index): [string, string][] => {
    const [, key, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
    return key === undefined ? [] : [[key, value ?? argv[index + 1] ?? '']]
  })
}

/** k3s hands on `--kubelet-arg key=value`. */
function forwarded(argv: readonly string[]): [string, string][] {
  return pairs(argv)
    .filter(([key]) => key === 'kubelet-arg')
    .flatMap(([, argument]) => pairs([`--${argument.replace(/^-+/, '')}`]))
}

/** The volumePluginDir of a KubeletConfiguration, YAML or JSON; undefined where it says none. */
export function pluginDirIn(configuration: string): string | undefined {
  let found: string | undefined
  for (const line of configuration.split(/\r?\n/)) {
    const match = /^([^#]*?)["']?volumePluginDir["']?[ \t]*:[ \t]*(?:"([^"]*)"|'([^']*)'|([^,} \t#]*))/.exec(line)
    if (match && /(^|[{, \t])$/.test(match[1] ?? '')) found = (match[2] ?? match[3] ?? match[4]) || found
  }
  return found
}

/** What k3s and rke2 hand on as --kubelet-arg: in a unit file, or in a configuration of theirs. The last one is in force. */
export function forwardedPluginDirIn(text: string): string | undefined {
  return [...text.matchAll(/^[^#\n]*volume-plugin-dir=([^"',\s]+)/gm)].at(-1)?.[1]
}
