import { DEFAULT_ALLOWED_FS_TYPES } from '../../src/config/rule.ts'
import { MOUNT_OPTIONS_BY_NAME, ORDINARY_MOUNT_OPTIONS } from '../../src/kernel/mount-table/mount-flags.ts'
import { FUSE_PROGRAMS } from '../../src/volume/fuse-programs.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { MOUNT_FLAG_TEXTS, MOUNT_OPTION_TEXTS, VOLUME_KIND_TEXTS } from './kind-descriptions.ts'
import { findRequestFaults, getVolumeKind, probeMountOption } from './probe.ts'
import { formatMarkdownCode, formatMarkdownTable } from './table.ts'

/** Every fsType that the page tells of. */
export const DOCUMENTED_FS_TYPES: readonly string[] = [
  ...volumeKindLookup.names.filter((name) => !name.includes('<')),
  ...[...FUSE_PROGRAMS.keys()].map((program) => `fuse.${program}`),
]

export const getExampleSource = (fsType: string) => VOLUME_KIND_TEXTS[fsType]?.source ?? ''

export function createKindsTable(): string {
  const rows = DOCUMENTED_FS_TYPES.map((fsType) => {
    const kind = getVolumeKind(fsType)
    const source = getExampleSource(fsType)
    return [
      formatMarkdownCode(fsType),
      VOLUME_KIND_TEXTS[fsType]?.text ?? '',
      source === '' ? 'none' : formatMarkdownCode(source),
      findRequestFaults(fsType, source, { subPath: 'part' }).length === 0 ? 'yes' : 'no',
      kind.walk === true ? 'yes' : `no: ${kind.walk}`,
      kind.groupOptions
        ? `the options ${formatMarkdownCode(kind.groupOptions(2000).join(','))}`
        : kind.walk === true
          ? 'idmap, or a walk'
          : 'idmap',
      kind.usesSecrets ? 'yes' : 'no',
      DEFAULT_ALLOWED_FS_TYPES.includes(fsType) ? 'yes' : 'no',
    ]
  })
  return formatMarkdownTable(
    [
      'fsType',
      'what it is',
      'source',
      '`subPath`',
      '`ownership: walk`',
      '`ownership: auto`',
      'secret',
      'allowed without being named',
    ],
    rows,
  )
}

export function createMountOptionSections(): string {
  const same = new Set(['nfs4'])
  const own = DOCUMENTED_FS_TYPES.filter((fsType) => !same.has(fsType) && listOptionExamples(fsType).length > 0)
  const without = DOCUMENTED_FS_TYPES.filter((fsType) => listOptionExamples(fsType).length === 0).map(
    formatMarkdownCode,
  )
  return [
    '### Of every kind',
    '',
    "An option that a rule must name is allowed only by the rule's `mountOptions`, with the value where one is shown.",
    '',
    formatMarkdownTable(
      ['option', 'meaning'],
      [...MOUNT_OPTIONS_BY_NAME.keys()].map((name) => {
        const leave = ORDINARY_MOUNT_OPTIONS.includes(name) ? '' : '; **a rule must name it**'
        return [formatMarkdownCode(name), `${MOUNT_FLAG_TEXTS[name] ?? ''}${leave}`]
      }),
    ),
    '',
    `${without.join(' and ')} have no others.`,
    ...own.flatMap((fsType) => {
      const names = listOptionExamples(fsType).map(({ name }) => name)
      const part = isFuseFsType(fsType) ? names.filter((name) => !COMMON_FUSE_OPTIONS.includes(name)) : names
      return ['', `### ${formatFsTypeTitle(fsType)}`, '', createOptionTable(fsType, part)]
    }),
    '',
    '### Of every FUSE program',
    '',
    createOptionTable('fuse.sshfs', COMMON_FUSE_OPTIONS),
  ].join('\n')
}

const isFuseFsType = (fsType: string) => fsType.startsWith('fuse.')
const COMMON_FUSE_OPTIONS = listOptionExamples('fuse.other').map(({ name }) => name)

const formatFsTypeTitle = (fsType: string) => (fsType === 'nfs' ? 'nfs and nfs4' : fsType)

/** The options of a kind with examples of their values. */
export function listOptionExamples(fsType: string): { name: string; examples: string[] }[] {
  const rules = getVolumeKind(fsType).optionRules()
  return [...rules].map(([name, { example }]) => ({ name, examples: example.split(' or ') }))
}

function createOptionTable(fsType: string, names: readonly string[]): string {
  const rules = listOptionExamples(fsType).filter(({ name }) => names.includes(name))
  const answers = rules.map(({ name, examples }) => {
    const each = examples.map((example) => ({
      example,
      ...probeMountOption(fsType, getExampleSource(fsType), example),
    }))
    const named = each.filter(({ isAllowed }) => !isAllowed).map(({ example }) => example)
    const readOnly = each.some(({ isForReadOnly }) => isForReadOnly) ? '; with `readOnly: true` alone' : ''
    const what = named.length === examples.length ? '' : ` ${named.map(formatMarkdownCode).join(', ')}`
    const leave = named.length === 0 ? '' : `; **a rule must name${what === '' ? ' it' : what}**`
    return [formatExamples(examples), `${getOptionText(fsType, name)}${readOnly}${leave}`]
  })
  return formatMarkdownTable(['option', 'meaning'], answers)
}

/** `vers=4.2`, `4.1` */
function formatExamples([first = '', ...more]: readonly string[]): string {
  return [first, ...more.map((example) => example.slice(example.indexOf('=') + 1))].map(formatMarkdownCode).join(', ')
}

function getOptionText(fsType: string, name: string): string {
  const text = MOUNT_OPTION_TEXTS[fsType]?.[name]
  if (text === undefined)
    throw new Error(`no text for ${fsType}'s option ${name}: see scripts/docs/kind-descriptions.ts`)
  return text
}
