import { DEFAULT_CONFIG } from '../config/defaults.ts'
import type { MountRequest } from '../config/mount-request.ts'
import { parseFlexVolumeRequest } from '../config/request.ts'
import { renderFault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { CREDENTIAL_OPTION_FORM } from '../volume/cifs.ts'
import { findVolumeKind, volumeKindLookup } from '../volume/index.ts'
import { findOptionFaults, parseOptionName } from '../volume/kind/options.ts'
import { IGNORED_MOUNT_OPTIONS, type SupportedDriver } from './drivers.ts'

/** A volume of another driver, with its option values as text. */
export interface ForeignVolume {
  fsType: string | undefined
  readOnly: boolean
  hasSecret: boolean
  options: ReadonlyMap<string, string>
}

/**
 * A volume translated to modekeep's options. `left` names each part that was not translated, the reason and the remedy.
 */
export interface VolumeTranslation {
  fsType: string
  source: string
  /** Undefined: no mount options are needed. */
  mountOptions: string | undefined
  ownership: 'auto' | undefined
  left: string[]
  /** Advice; nothing is lost. */
  notes: string[]
  /** The request that modekeep reads from the result. */
  request: MountRequest | undefined
}

const SECRET_OPTION_KEY_PATTERN = /pass|user|key|secret|token|cred/i

/**
 * Translates a volume of a supported driver. Pure.
 * @returns the reasons if it cannot be mounted
 */
export function translateVolume(driver: SupportedDriver, foreign: ForeignVolume): VolumeTranslation | string[] {
  const left: string[] = []
  const notes: string[] = []
  const values = new Map<string, { key: string; value: string }>()
  for (const [key, value] of foreign.options) {
    const mapping = driver.options[key]
    if (mapping === undefined) {
      const shown = SECRET_OPTION_KEY_PATTERN.test(key) ? ' (its value is not shown)' : ` is ${quoteValue(value)}`
      left.push(`option ${quoteValue(key)}${shown}: ${driver.names[0]} does not read it; it was left out`)
    } else if (mapping.to === 'nothing') {
      if (!mapping.idle?.includes(value.toLowerCase()))
        left.push(
          `option ${quoteValue(key)} is ${quoteValue(value)}: ${mapping.why}; it was left out: ${mapping.remedy}`,
        )
    } else if (values.has(mapping.to)) {
      left.push(
        `option ${quoteValue(key)} says what ${quoteValue(values.get(mapping.to)?.key)} says too: it was left out, keep one`,
      )
    } else values.set(mapping.to, { key, value })
  }
  const source = composeVolumeSource(driver, (part) => values.get(part)?.value)
  if (source === undefined)
    return [
      `it names no server and directory that ${driver.names[0]} could mount: write ${formatRequiredDriverOptions(driver)}`,
    ]
  const { kept, rejected, idle } = partitionMountOptions(
    driver.fsType,
    (values.get('mountOptions')?.value ?? '').split(','),
  )
  const optionsKey = values.get('mountOptions')?.key ?? 'mountOptions'
  left.push(...rejected.map((why) => `option ${quoteValue(optionsKey)} ${why}`))
  if (idle.length > 0)
    notes.push(`option ${quoteValue(optionsKey)} has ${quoteValue(idle)}, which mount(8) alone reads: left out`)
  if (foreign.fsType && foreign.fsType !== driver.fsType)
    notes.push(
      `fsType was ${quoteValue(foreign.fsType)}, which ${driver.names[0]} does not read: it is ${driver.fsType} now`,
    )
  const translation: VolumeTranslation = {
    fsType: driver.fsType,
    source,
    mountOptions: kept.length > 0 ? kept.join(',') : undefined,
    ownership:
      driver.appliesGroup && !kept.some((option) => ['gid', 'noforcegid'].includes(parseOptionName(option)))
        ? 'auto'
        : undefined,
    left,
    notes,
    request: undefined,
  }
  if (driver.appliesGroup) notes.push(...createGroupNotes(translation.ownership))
  if (
    driver.fsType === 'cifs' &&
    !foreign.hasSecret &&
    !kept.some((option) => /^(guest|sec=(krb5i?|none))$/.test(option))
  )
    left.push(
      'it has no secretRef: a share needs a user; name a Secret of type modekeep/fs with the keys username and password',
    )
  return verifyTranslation(translation, foreign)
}

function createGroupNotes(ownership: VolumeTranslation['ownership']): string[] {
  if (ownership === undefined) return []
  return [
    'the driver made the pod\'s fsGroup the owner and the group of all files: "ownership: auto" gives the group, with file_mode=0660 and dir_mode=0770 where you write none; add uid= to "mountOptions" if the owner matters',
  ]
}

function composeVolumeSource(
  { fsType, options }: SupportedDriver,
  value: (part: string) => string | undefined,
): string | undefined {
  const source = value('source')
  if (source !== undefined && source !== '') return source
  const [server, path] = [value('server'), value('path')]
  if (!server || !path || !Object.values(options).some(({ to }) => to === 'server')) return undefined
  const directory = `/${path.replace(/^\/+/, '')}`
  return fsType === 'nfs' ? `${server}:${directory}` : `//${server}${directory}`
}

/** Formats the option names that a driver needs, for a message. */
function formatRequiredDriverOptions({ options }: SupportedDriver): string {
  const names = (...parts: string[]) => Object.keys(options).filter((key) => parts.includes(options[key]?.to ?? ''))
  const pair = names('server', 'path')
    .map((name) => quoteValue(name))
    .join(' and ')
  return (
    pair ||
    names('source')
      .map((name) => quoteValue(name))
      .join(' or ')
  )
}

/** Splits options into those that modekeep's kind accepts and the others. Values of credentials are not shown. */
function partitionMountOptions(fsType: string, options: readonly string[]) {
  const rules = findVolumeKind(fsType)?.optionRules()
  const kept: string[] = []
  const rejected: string[] = []
  const idle: string[] = []
  for (const option of options.map((text) => text.trim()).filter((text) => text !== '')) {
    const name = parseOptionName(option)
    if (CREDENTIAL_OPTION_FORM.test(name)) {
      rejected.push(
        `has ${quoteValue(name)} (its value is not shown): it would be in the pod and in the mount table; it was left out: put it into a Secret of type modekeep/fs, and name that in secretRef`,
      )
    } else if (IGNORED_MOUNT_OPTIONS.test(option)) idle.push(option)
    else if (/context$/.test(name)) {
      rejected.push(
        `has ${quoteValue(option)}: modekeep mounts with no SELinux context; it was left out: set "capabilities": {"selinuxRelabel": true} in the configuration of the nodes`,
      )
    } else if (rules === undefined || findOptionFaults(fsType, [option], rules).length > 0) {
      const example = rules?.get(name)?.example
      rejected.push(
        `has ${quoteValue(option)}: ${example === undefined ? `modekeep's ${fsType} has no such option` : `modekeep takes it as ${example}`}; it was left out: "docs/options.md" lists what there is`,
      )
    } else if (!kept.includes(option)) kept.push(option)
  }
  return { kept, rejected, idle }
}

/** Adds modekeep's own faults of the result. */
function verifyTranslation(translation: VolumeTranslation, { readOnly }: ForeignVolume): VolumeTranslation {
  const { fsType, source, mountOptions, ownership } = translation
  const options = {
    source,
    ...(mountOptions === undefined ? {} : { mountOptions }),
    ...(ownership === undefined ? {} : { ownership }),
    'kubernetes.io/fsType': fsType,
    'kubernetes.io/readwrite': readOnly ? 'ro' : 'rw',
  }
  try {
    return {
      ...translation,
      request: parseFlexVolumeRequest('/', JSON.stringify(options), DEFAULT_CONFIG, volumeKindLookup),
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ...translation, left: [...translation.left, ...error.faults.map((fault) => renderFault(fault))] }
  }
}
