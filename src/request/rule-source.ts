import { isNamespace, NAMESPACE, type Rule } from './rule.ts'
import { parseSource, type Source, sourceText } from './source.ts'

/** A source as rules compare it: two of different forms are never the same. */
interface Place {
  form: string
  path: string
}

/** What an entry of a rule's sources means once a namespace is filled in. */
interface Pattern extends Place {
  /** Written with `/*`: what lies strictly below. Else exactly that. */
  isBelow: boolean
}

/** @param isProgram a FUSE program takes it, for which names in capitals and small letters may differ */
function placeOf(source: Source, isProgram = false): Place {
  if (isProgram && source.type !== 'local') return { form: 'text', path: sourceText(source) ?? '' }
  switch (source.type) {
    case 'none':
      return { form: 'none', path: '' }
    case 'text':
      return { form: 'text', path: source.text }
    case 'export':
    case 'share':
      // Names of servers are the same in capitals and small letters.
      return { form: `${source.type} ${source.server.toLowerCase()}`, path: source.path }
    default:
      return { form: 'path', path: source.path }
  }
}

const BELOW = '/*'

/** @param entry without {namespace} */
function patternOf(entry: string, isProgram = false): Pattern {
  if (!entry.endsWith(BELOW)) return { ...placeOf(parseSource(entry), isProgram), isBelow: false }
  const { form, path } = placeOf(parseSource(`${entry.slice(0, -BELOW.length)}/x`), isProgram)
  return { form, path: path.slice(0, -'/x'.length), isBelow: true }
}

/**
 * Whether an entry of a rule's sources allows a source. By whole names: what begins with `/a` in another name is not
 * below it.
 * @param namespace the pod's; one that is no DNS label fills no {namespace}
 */
export function holdsSource(entry: string, source: Source, namespace: string | undefined, fsType: string): boolean {
  const isProgram = fsType.startsWith('fuse.')
  if (entry.includes(NAMESPACE) && !isNamespace(namespace)) return false
  const pattern = patternOf(entry.replaceAll(NAMESPACE, namespace ?? ''), isProgram)
  const { form, path } = placeOf(source, isProgram)
  if (form !== pattern.form) return false
  return pattern.isBelow
    ? path.startsWith(`${pattern.path}/`) && path.length > pattern.path.length + 1
    : path === pattern.path
}

const isNormal = (path: string) => /^(\/[^/\0]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path)
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const TEXT = /^[A-Za-z0-9_][^\s,:/\x00-\x1f\x7f]*([:/][^,\x00-\x1f\x7f]*)?$/

/** Whether it is well written: {namespace} as a whole component of a path, one `*` at the end alone. */
export function isEntry(entry: string): boolean {
  const filled = entry
    .split('/')
    .map((part) => (part === NAMESPACE ? 'x' : part))
    .join('/')
  // What begins a source names a server or a bucket.
  if (/^(\/\/)?\{/.test(entry) || /[{}*]/.test(filled.replace(/\/\*$/, ''))) return false
  const { form, path } = patternOf(filled)
  const whole = filled.endsWith(BELOW) ? `${path}/x` : path
  if (form === 'path') return isNormal(whole)
  return form !== 'text' || (TEXT.test(whole) && !/(^|[/:])\.\.?(\/|$)|\/\/|\/$/.test(whole))
}

/** Whether every source that an entry allows is allowed by another one, whatever namespace there is. */
export function within(entry: string, wide: string): boolean {
  const [inner, outer] = [patternOf(entry), patternOf(wide)]
  if (inner.form !== outer.form) return false
  if (inner.path === outer.path) return inner.isBelow === outer.isBelow
  return outer.isBelow && inner.path.startsWith(`${outer.path}/`)
}

/** Whether something may be mounted by one entry that shows something of what may be mounted by another. */
export function overlaps(one: string, other: string): boolean {
  const [first, second] = [patternOf(one), patternOf(other)]
  const holds = (above: string, below: string) => below === above || below.startsWith(`${above}/`)
  return first.form === second.form && (holds(first.path, second.path) || holds(second.path, first.path))
}

/** The directory of the node that an entry speaks of, up to its first {namespace}; undefined for other sources. */
export function directoryOf(entry: string): string | undefined {
  const { form, path } = patternOf(entry)
  if (form !== 'path') return undefined
  return path.split(`/${NAMESPACE}`)[0] || '/'
}

/** Kinds that show a directory of the node itself, and so let a pod write to files in it. */
const showsDirectory = (fsType: string) => fsType === 'bind' || fsType.startsWith('fuse.')

/**
 * The first rule by which some pod could write to a file, as it may mount a directory that holds it for writing;
 * undefined: none. A rule that is for directories strictly below one has no effect on files that lie in that itself.
 */
export function ruleToWrite(rules: readonly Rule[], path: string, fallback: readonly string[]): Rule | undefined {
  return rules.find(({ readOnly, sources, fsTypes = fallback }) => {
    if (readOnly || !fsTypes.some(showsDirectory)) return false
    return sources?.some((entry) => canHold(entry, path)) ?? true
  })
}

function canHold(entry: string, path: string): boolean {
  const { path: directory, isBelow } = patternOf(entry)
  return concernsPath(entry, path) && namesIn(path).length > namesIn(directory).length + (isBelow ? 1 : 0)
}

/**
 * Whether some rule names a path among its sources, for whatever namespace: the path itself, a directory that holds it, or
 * something in it.
 */
export function isNamedByRule(rules: readonly Pick<Rule, 'sources'>[], path: string): boolean {
  return rules.some(({ sources = [] }) => sources.some((entry) => concernsPath(entry, path)))
}

function concernsPath(entry: string, path: string): boolean {
  const { form, path: directory } = patternOf(entry)
  if (form !== 'path') return false
  const there = namesIn(path)
  return namesIn(directory)
    .slice(0, there.length)
    .every((name, at) => name === there[at] || (name === NAMESPACE && isNamespace(there[at])))
}

const namesIn = (path: string) => path.split('/').filter((name) => name !== '')
