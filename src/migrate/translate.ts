import { quoted, Refusal } from '../refusal/refusal.ts'
import { DEFAULT_CONFIG } from '../request/defaults.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { readRequest } from '../request/request.ts'
import { kindOf, kinds } from '../volume/index.ts'
import { nameOf, optionFaults } from '../volume/kind/options.ts'
import { IDLE_MOUNT_OPTIONS, type KnownDriver } from './drivers.ts'

/** What somebody wrote for another driver; values as text. */
export interface Foreign {
  fsType: string | undefined
  readOnly: boolean
  hasSecret: boolean
  options: ReadonlyMap<string, string>
}

/** What could not be taken over: a sentence of what, why and what to do. */
export interface Translation {
  fsType: string
  source: string
  /** Undefined: there is nothing to write. */
  mountOptions: string | undefined
  ownership: 'auto' | undefined
  left: string[]
  /** What to know; nothing is lost. */
  notes: string[]
  /** As modekeep would read it. */
  request: MountRequest | undefined
}

const CREDENTIALS = /^(user|username|pass|password|password2|dom|domain|workgroup|cred|credentials)$/

const SECRET = /pass|user|key|secret|token|cred/i

/**
 * A volume of a known driver as modekeep's. Pure.
 * @returns undefined with the reasons where there is nothing to be mounted
 */
export function translate(driver: KnownDriver, foreign: Foreign): Translation | string[] {
  const left: string[] = []
  const notes: string[] = []
  const values = new Map<string, { key: string; value: string }>()
  for (const [key, value] of foreign.options) {
    const fate = driver.options[key]
    if (fate === undefined) {
      const shown = SECRET.test(key) ? ' (its value is not shown)' : ` is ${quoted(value)}`
      left.push(`option ${quoted(key)}${shown}: ${driver.names[0]} does not read it; it was left out`)
    } else if (fate.to === 'nothing') {
      if (!fate.idle?.includes(value.toLowerCase()))
        left.push(`option ${quoted(key)} is ${quoted(value)}: ${fate.why}; it was left out: ${fate.remedy}`)
    } else if (values.has(fate.to)) {
      left.push(
        `option ${quoted(key)} says what ${quoted(values.get(fate.to)?.key)} says too: it was left out, keep one`,
      )
    } else values.set(fate.to, { key, value })
  }
  const source = sourceOf(driver, (part) => values.get(part)?.value)
  if (source === undefined)
    return [`it names no server and directory that ${driver.names[0]} could mount: write ${wantedOf(driver)}`]
  const { kept, rejected, idle } = sorted(driver.fsType, (values.get('mountOptions')?.value ?? '').split(','))
  const own = values.get('mountOptions')?.key ?? 'mountOptions'
  left.push(...rejected.map((why) => `option ${quoted(own)} ${why}`))
  if (idle.length > 0) notes.push(`option ${quoted(own)} has ${quoted(idle)}, which mount(8) alone reads: left out`)
  if (foreign.fsType && foreign.fsType !== driver.fsType)
    notes.push(
      `fsType was ${quoted(foreign.fsType)}, which ${driver.names[0]} does not read: it is ${driver.fsType} now`,
    )
  const translation: Translation = {
    fsType: driver.fsType,
    source,
    mountOptions: kept.length > 0 ? kept.join(',') : undefined,
    ownership:
      driver.givesGroup && !kept.some((option) => ['gid', 'noforcegid'].includes(nameOf(option))) ? 'auto' : undefined,
    left,
    notes,
    request: undefined,
  }
  if (driver.givesGroup) notes.push(...groupNotes(translation.ownership))
  if (
    driver.fsType === 'cifs' &&
    !foreign.hasSecret &&
    !kept.some((option) => /^(guest|sec=(krb5i?|none))$/.test(option))
  )
    left.push(
      'it has no secretRef: a share needs a user; name a Secret of type modekeep/fs with the keys username and password',
    )
  return checked(translation, foreign)
}

function groupNotes(ownership: Translation['ownership']): string[] {
  if (ownership === undefined) return []
  return [
    'the driver made the pod\'s fsGroup the owner and the group of all files: "ownership: auto" gives the group, with file_mode=0660 and dir_mode=0770 where you write none; add uid= to "mountOptions" if the owner matters',
  ]
}

function sourceOf({ fsType, options }: KnownDriver, value: (part: string) => string | undefined): string | undefined {
  const whole = value('source')
  if (whole !== undefined && whole !== '') return whole
  const [server, path] = [value('server'), value('path')]
  if (!server || !path || !Object.values(options).some(({ to }) => to === 'server')) return undefined
  const directory = `/${path.replace(/^\/+/, '')}`
  return fsType === 'nfs' ? `${server}:${directory}` : `//${server}${directory}`
}

/** What a driver's options have to name, for a message. */
function wantedOf({ options }: KnownDriver): string {
  const names = (...parts: string[]) => Object.keys(options).filter((key) => parts.includes(options[key]?.to ?? ''))
  const pair = names('server', 'path')
    .map((name) => quoted(name))
    .join(' and ')
  return (
    pair ||
    names('source')
      .map((name) => quoted(name))
      .join(' or ')
  )
}

/** Options as modekeep's kind takes them, and what it does not. Values of credentials are not shown. */
function sorted(fsType: string, options: readonly string[]) {
  const rules = kindOf(fsType)?.optionRules()
  const kept: string[] = []
  const rejected: string[] = []
  const idle: string[] = []
  for (const option of options.map((text) => text.trim()).filter((text) => text !== '')) {
    const name = nameOf(option)
    if (CREDENTIALS.test(name)) {
      rejected.push(
        `has ${quoted(name)} (its value is not shown): it would be in the pod and in the mount table; it was left out: put it into a Secret of type modekeep/fs, and name that in secretRef`,
      )
    } else if (IDLE_MOUNT_OPTIONS.test(option)) idle.push(option)
    else if (/context$/.test(name)) {
      rejected.push(
        `has ${quoted(option)}: modekeep mounts with no SELinux context; it was left out: set "capabilities": {"selinuxRelabel": true} in the configuration of the nodes`,
      )
    } else if (rules === undefined || optionFaults(fsType, [option], rules).length > 0) {
      const example = rules?.get(name)?.example
      rejected.push(
        `has ${quoted(option)}: ${example === undefined ? `modekeep's ${fsType} has no such option` : `modekeep takes it as ${example}`}; it was left out: "docs/options.md" lists what there is`,
      )
    } else if (!kept.includes(option)) kept.push(option)
  }
  return { kept, rejected, idle }
}

/** With what modekeep itself says of it. */
function checked(translation: Translation, { readOnly }: Foreign): Translation {
  const { fsType, source, mountOptions, ownership } = translation
  const options = {
    source,
    ...(mountOptions === undefined ? {} : { mountOptions }),
    ...(ownership === undefined ? {} : { ownership }),
    'kubernetes.io/fsType': fsType,
    'kubernetes.io/readwrite': readOnly ? 'ro' : 'rw',
  }
  try {
    return { ...translation, request: readRequest('/', JSON.stringify(options), DEFAULT_CONFIG, kinds) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ...translation, left: [...translation.left, ...error.faults] }
  }
}
