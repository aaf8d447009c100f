import { OPTIONAL } from '../container-mount/order.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { parseGroup } from '../request/fs-group.ts'

/** A pod's annotation. */
export const GROUP = 'modekeep/group'

/** Its value `root` asks for the set-gid bit on the roots of its volumes. */
const SET_GID = 'modekeep/set-gid'

/** What asks for a clone of modekeep's own volume, as a refusal names it. */
export const OWN_ASKED = 'the pod has a user namespace of its own'

/** What a pod's annotations ask for. */
export interface Asked {
  /** The group of all its volumes that are not named. */
  readonly all: number | undefined
  /** By a volume's name, or the path where a container has it: see asPath. */
  readonly named: ReadonlyMap<string, number>
  /** What a message begins with: `annotation modekeep/group is "2000"`. */
  readonly shown: string
}

const EXAMPLES = '"2000" for all volumes of the pod, or "data=2000,logs=3000"'

// An annotation may have 256 KiB; a pod has fewer volumes than this, and no path of a container is longer.
const MOST_ENTRIES = 200
const LONGEST_NAME = 4096

type Annotations = Readonly<Record<string, string>>

/** A path in a container as annotations are compared with it: without the slash that its end may have. */
export function asPath(path: string): string {
  let end = path.length
  // An expression would look at the same slashes again and again.
  while (end > 1 && path[end - 1] === '/') end--
  return path.slice(0, end)
}

const shownOf = (text: string) => `annotation ${GROUP} is ${quoted(text)}`

const textOf = (annotations: Annotations, key: string) =>
  Object.hasOwn(annotations, key) ? annotations[key] : undefined

export function isAsking(annotations: Annotations): boolean {
  return Object.hasOwn(annotations, GROUP)
}

/** Whether the pod's containers may start without the group. @throws {Refusal} for a value that means neither */
export function isOptional(annotations: Annotations): boolean {
  const text = textOf(annotations, OPTIONAL) ?? 'false'
  if (text === 'true' || text === 'false') return text === 'true'
  throw new Refusal(`annotation ${OPTIONAL} is ${quoted(text)}: write "true" or "false"`)
}

/** Whether the pod asks for the set-gid bit on the roots of its volumes. @throws {Refusal} for another value */
export function hasSetGid(annotations: Annotations): boolean {
  const text = textOf(annotations, SET_GID)
  if (text === undefined || text === 'root') return text !== undefined
  throw new Refusal(`annotation ${SET_GID} is ${quoted(text)}: write "root", or leave it out`)
}

/** Pure. @returns undefined where nothing is asked for. @throws {Refusal} that names every entry which cannot be read */
export function askedOf(annotations: Annotations): Asked | undefined {
  const text = textOf(annotations, GROUP)
  if (text === undefined) return undefined
  const entries = text.split(',', MOST_ENTRIES + 1)
  const shown = shownOf(text)
  const faults: string[] = []
  const fault = (what: string) => void faults.push(`${shown}: ${what}`)
  let all: number | undefined
  const named = new Map<string, number>()
  if (entries.length > MOST_ENTRIES) fault(`it has more than ${MOST_ENTRIES} entries: write ${EXAMPLES}`)
  for (const entry of entries.slice(0, MOST_ENTRIES)) {
    const at = entry.lastIndexOf('=')
    const written = entry.slice(0, Math.max(0, at)).trim()
    const name = written.startsWith('/') ? asPath(written) : written
    const group = parseGroup(entry.slice(at + 1).trim())
    if (typeof group !== 'number' || (at >= 0 && name === '')) {
      fault(`${quoted(entry)} names no group from 0 to 4294967294: write ${EXAMPLES}`)
    } else if (name.length > LONGEST_NAME) {
      fault(
        `${quoted(name)} is no name of a volume, and a path has at most ${LONGEST_NAME} characters: write ${EXAMPLES}`,
      )
    } else if (at < 0) {
      if (all !== undefined) fault(`it has two groups for all volumes, ${all} and ${group}: keep one`)
      all = group
    } else {
      if (named.has(name)) fault(`it names volume ${quoted(name)} twice: keep one`)
      named.set(name, group)
    }
  }
  if (faults.length > 0) throw new Refusal(faults)
  return { all, named, shown }
}

/** A refusal of a container, so that it says what is asked of modekeep, whatever it is about. */
export function askedFor(annotations: Annotations, { faults, cause }: Refusal): Refusal {
  const text = textOf(annotations, GROUP)
  const shown = text === undefined ? OWN_ASKED : shownOf(text)
  const says = (fault: string) => fault.startsWith('annotation ') || fault.startsWith(OWN_ASKED)
  return new Refusal(
    faults.map((fault) => (says(fault) ? fault : `${shown}, but ${fault}`)),
    { cause },
  )
}
