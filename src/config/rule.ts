import { formatSource, parseSource, type VolumeSource } from './source.ts'

/** Kinds of CSI volumes: written in the pod itself, or bound by a claim. */
export const CSI_LIFECYCLES = ['inline', 'persistent'] as const
export type CsiLifecycle = (typeof CSI_LIFECYCLES)[number]

/** The part of an `allow` or `map` rule that concerns volumes whose group on disk is a system group. */
export interface SystemGroupRule {
  /** True: such a volume is mapped, even where users of the node reach it through a mount without nosuid. */
  systemGroups?: boolean | undefined
  /** Numbers and ranges of groups that are protected in addition to those below 1000. */
  protectedGroups?: readonly string[] | undefined
}

/**
 * Delivery of a Secret's key to a FUSE program. `option`: a mount option that names a file with the value. The
 * file exists until the mount is ready; with `keep` the daemon inherits it. `variable`: an environment variable.
 */
type SecretDelivery = { option: string; keep?: 'daemon' | undefined } | { variable: string }

export type SecretKeys = Readonly<Record<string, SecretDelivery>>

/**
 * A rule of `allow` in the node's configuration. It allows a request if every key that it has matches. A missing key
 * matches anything, except fsTypes, idmapFrom and mountOptions.
 */
export interface AllowRule extends SystemGroupRule {
  /** Globs of namespaces: `team-*`. */
  namespaces?: readonly string[] | undefined
  /** Allowed kinds of CSI volumes. A rule with this key matches no FlexVolume. */
  volumes?: readonly CsiLifecycle[] | undefined
  /** Entries as for matchesSourceEntry. Ignored for a tmpfs, which has no source. */
  sources?: readonly string[] | undefined
  /** Left out: bind and tmpfs. */
  fsTypes?: readonly string[] | undefined
  ownership?: readonly string[] | undefined
  groupAccess?: readonly string[] | undefined
  /** Numbers and ranges of the groups that a pod may have as its fsGroup: `2000-2999`. */
  fsGroups?: readonly string[] | undefined
  /** Numbers and ranges of groups on disk that a pod may have shown as its own. Left out: none. */
  idmapFrom?: readonly string[] | undefined
  /** Names of options, or options with their values. Left out: those that the kind allows by itself. */
  mountOptions?: readonly string[] | undefined
  /** True: writable mounts are refused. */
  readOnly?: boolean | undefined
  /** True: no other node mounts the volumes of these servers, so a walk may record their original groups. */
  singleNode?: boolean | undefined
  /**
   * False: a walk does not add set-gid to directories. Files never get it. `root`: like true, and the option setGid may
   * set it on the root of a mapped volume.
   */
  setGid?: boolean | 'root' | undefined
  /** `include`: mounts inside of a source may be shown, if a rule allows each as a source of its own. */
  submounts?: 'include' | undefined
  /**
   * Delivery of a Secret's keys to a FUSE program. Left out: none is passed, and a pod with a Secret is refused.
   */
  secretKeys?: SecretKeys | undefined
}

export const DEFAULT_ALLOWED_FS_TYPES: readonly string[] = ['bind', 'tmpfs']

/**
 * Denies all other sources, because a source is a hostPath in disguise. Each namespace has a directory of its own,
 * which it may not mount itself.
 */
export const DEFAULT_ALLOW_RULES: readonly AllowRule[] = [{ sources: ['/var/lib/modekeep/volumes/{namespace}/*'] }]

export const NAMESPACE_PLACEHOLDER = '{namespace}'

/** Every namespace is a DNS label (RFC 1123), so it cannot form a path. */
function isNamespaceName(text: string | undefined): text is string {
  return text !== undefined && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
}

export function matchesGlob(glob: string, text: string): boolean {
  return new RegExp(`^${glob.split('*').map(RegExp.escape).join('.*')}$`).test(text)
}

/** @param ranges `2000` or `2000-2999` */
export function isGroupInRanges(ranges: readonly string[], group: number): boolean {
  return ranges.some((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return first !== undefined && last !== undefined && first <= group && group <= last
  })
}

/** A source as rules compare it. Sources of different forms are never equal. */
interface ComparableSource {
  form: string
  path: string
}

/** An entry of a rule's sources with the namespace filled in. */
interface SourcePattern extends ComparableSource {
  /** Written with `/*`: matches paths strictly below. Otherwise only the path itself. */
  isBelow: boolean
}

/** @param isProgram a FUSE program interprets the source; its names may be case-sensitive */
function normalizeSource(source: VolumeSource, isProgram = false): ComparableSource {
  if (isProgram && source.type !== 'local') return { form: 'text', path: formatSource(source) ?? '' }
  switch (source.type) {
    case 'none':
      return { form: 'none', path: '' }
    case 'text':
      return { form: 'text', path: source.text }
    case 'export':
    case 'share':
      // Names of servers are not case-sensitive.
      return { form: `${source.type} ${source.server.toLowerCase()}`, path: source.path }
    default:
      return { form: 'path', path: source.path }
  }
}

const BELOW_PATH_SUFFIX = '/*'

/** @param entry without {namespace} */
function parseSourcePattern(entry: string, isProgram = false): SourcePattern {
  if (!entry.endsWith(BELOW_PATH_SUFFIX)) return { ...normalizeSource(parseSource(entry), isProgram), isBelow: false }
  const { form, path } = normalizeSource(parseSource(`${entry.slice(0, -BELOW_PATH_SUFFIX.length)}/x`), isProgram)
  return { form, path: path.slice(0, -'/x'.length), isBelow: true }
}

/**
 * Returns whether an entry of a rule's sources allows a source. Whole names are compared: `/ab` is not below `/a`.
 * @param namespace the pod's; if it is no DNS label, no entry with {namespace} matches
 */
export function matchesSourceEntry(
  entry: string,
  source: VolumeSource,
  namespace: string | undefined,
  fsType: string,
): boolean {
  const isProgram = fsType.startsWith('fuse.')
  if (entry.includes(NAMESPACE_PLACEHOLDER) && !isNamespaceName(namespace)) return false
  const pattern = parseSourcePattern(entry.replaceAll(NAMESPACE_PLACEHOLDER, namespace ?? ''), isProgram)
  const { form, path } = normalizeSource(source, isProgram)
  if (form !== pattern.form) return false
  return pattern.isBelow
    ? path.startsWith(`${pattern.path}/`) && path.length > pattern.path.length + 1
    : path === pattern.path
}

export const isNormalizedPath = (path: string) => /^(\/[^/\0]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path)
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const SOURCE_TEXT_PATTERN = /^[A-Za-z0-9_][^\s,:/\x00-\x1f\x7f]*([:/][^,\x00-\x1f\x7f]*)?$/

/** Returns whether an entry is valid: {namespace} only as a whole path component, and one `*` only at the end. */
export function isValidSourceEntry(entry: string): boolean {
  const filled = entry
    .split('/')
    .map((part) => (part === NAMESPACE_PLACEHOLDER ? 'x' : part))
    .join('/')
  // The first component names a server or a bucket.
  if (/^(\/\/)?\{/.test(entry) || /[{}*]/.test(filled.replace(/\/\*$/, ''))) return false
  const { form, path } = parseSourcePattern(filled)
  const whole = filled.endsWith(BELOW_PATH_SUFFIX) ? `${path}/x` : path
  if (form === 'path') return isNormalizedPath(whole)
  return form !== 'text' || (SOURCE_TEXT_PATTERN.test(whole) && !/(^|[/:])\.\.?(\/|$)|\/\/|\/$/.test(whole))
}

/** Returns whether the wide entry allows every source that the other one allows, in any namespace. */
export function isSourceEntryWithin(entry: string, wide: string): boolean {
  const [inner, outer] = [parseSourcePattern(entry), parseSourcePattern(wide)]
  if (inner.form !== outer.form) return false
  if (inner.path === outer.path) return inner.isBelow === outer.isBelow
  return outer.isBelow && inner.path.startsWith(`${outer.path}/`)
}

/** Returns whether sources of one entry may include, or be part of, sources of the other. */
export function areSourceEntriesOverlapping(one: string, other: string): boolean {
  const [first, second] = [parseSourcePattern(one), parseSourcePattern(other)]
  const holds = (above: string, below: string) => below === above || below.startsWith(`${above}/`)
  return first.form === second.form && (holds(first.path, second.path) || holds(second.path, first.path))
}

/** Returns the node directory of an entry up to its first {namespace}; undefined for other sources. */
export function parseSourceEntryDirectory(entry: string): string | undefined {
  const { form, path } = parseSourcePattern(entry)
  if (form !== 'path') return undefined
  return path.split(`/${NAMESPACE_PLACEHOLDER}`)[0] || '/'
}

/** Kinds that show a directory of the node itself, so that a pod can write to its files. */
const showsNodeDirectory = (fsType: string) => fsType === 'bind' || fsType.startsWith('fuse.')

/**
 * Returns the first rule that lets some pod write to a file, by mounting a directory above it; undefined: none. A rule
 * for directories strictly below a directory does not concern the files in that directory itself.
 */
export function findRulePermittingWrites(
  rules: readonly AllowRule[],
  path: string,
  fallback: readonly string[],
): AllowRule | undefined {
  return rules.find(({ readOnly, sources, fsTypes = fallback }) => {
    if (readOnly || !fsTypes.some(showsNodeDirectory)) return false
    return sources?.some((entry) => isPathWritableByEntry(entry, path)) ?? true
  })
}

function isPathWritableByEntry(entry: string, path: string): boolean {
  const { path: directory, isBelow } = parseSourcePattern(entry)
  return (
    isPathRelatedToEntry(entry, path) &&
    splitPathNames(path).length > splitPathNames(directory).length + (isBelow ? 1 : 0)
  )
}

/**
 * Returns whether a rule's sources name the path itself, a directory above it, or a path below it, in any namespace.
 */
export function isPathNamedByRule(rules: readonly Pick<AllowRule, 'sources'>[], path: string): boolean {
  return rules.some(({ sources = [] }) => sources.some((entry) => isPathRelatedToEntry(entry, path)))
}

function isPathRelatedToEntry(entry: string, path: string): boolean {
  const { form, path: directory } = parseSourcePattern(entry)
  if (form !== 'path') return false
  const names = splitPathNames(path)
  return splitPathNames(directory)
    .slice(0, names.length)
    .every((name, at) => name === names[at] || (name === NAMESPACE_PLACEHOLDER && isNamespaceName(names[at])))
}

const splitPathNames = (path: string) => path.split('/').filter((name) => name !== '')
