import { DEFAULT_ALLOWED_FS_TYPES } from '../../src/config/rule.ts'
import { MOUNT_OPTIONS_BY_NAME, ORDINARY_MOUNT_OPTIONS } from '../../src/kernel/mount-table/mount-flags.ts'
import { FUSE_PROGRAMS } from '../../src/volume/fuse-programs.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { FLAG_TEXTS, KIND_TEXTS, MOUNT_OPTION_TEXTS } from './kind-descriptions.ts'
import { answerTo, faultsOf, kindNamed } from './probe.ts'
import { code, table } from './table.ts'

/** Every fsType that the page tells of. */
export const FS_TYPES: readonly string[] = [
  ...volumeKindLookup.names.filter((name) => !name.includes('<')),
  ...[...FUSE_PROGRAMS.keys()].map((program) => `fuse.${program}`),
]

export const sourceOf = (fsType: string) => KIND_TEXTS[fsType]?.source ?? ''

export function kindsTable(): string {
  const rows = FS_TYPES.map((fsType) => {
    const kind = kindNamed(fsType)
    const source = sourceOf(fsType)
    return [
      code(fsType),
      KIND_TEXTS[fsType]?.text ?? '',
      source === '' ? 'none' : code(source),
      faultsOf(fsType, source, { subPath: 'part' }).length === 0 ? 'yes' : 'no',
      kind.walk === true ? 'yes' : `no: ${kind.walk}`,
      kind.groupOptions
        ? `the options ${code(kind.groupOptions(2000).join(','))}`
        : kind.walk === true
          ? 'idmap, or a walk'
          : 'idmap',
      kind.usesSecrets ? 'yes' : 'no',
      DEFAULT_ALLOWED_FS_TYPES.includes(fsType) ? 'yes' : 'no',
    ]
  })
  return table(
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

export function mountOptions(): string {
  const same = new Set(['nfs4'])
  const own = FS_TYPES.filter((fsType) => !same.has(fsType) && rulesOf(fsType).length > 0)
  const without = FS_TYPES.filter((fsType) => rulesOf(fsType).length === 0).map(code)
  return [
    '### Of every kind',
    '',
    "An option that a rule must name is allowed only by the rule's `mountOptions`, with the value where one is shown.",
    '',
    table(
      ['option', 'meaning'],
      [...MOUNT_OPTIONS_BY_NAME.keys()].map((name) => {
        const leave = ORDINARY_MOUNT_OPTIONS.includes(name) ? '' : '; **a rule must name it**'
        return [code(name), `${FLAG_TEXTS[name] ?? ''}${leave}`]
      }),
    ),
    '',
    `${without.join(' and ')} have no others.`,
    ...own.flatMap((fsType) => {
      const names = rulesOf(fsType).map(({ name }) => name)
      const part = isFuse(fsType) ? names.filter((name) => !OF_FUSE.includes(name)) : names
      return ['', `### ${title(fsType)}`, '', optionTable(fsType, part)]
    }),
    '',
    '### Of every FUSE program',
    '',
    optionTable('fuse.sshfs', OF_FUSE),
  ].join('\n')
}

const isFuse = (fsType: string) => fsType.startsWith('fuse.')
const OF_FUSE = rulesOf('fuse.other').map(({ name }) => name)

const title = (fsType: string) => (fsType === 'nfs' ? 'nfs and nfs4' : fsType)

/** The options of a kind with examples of their values. */
export function rulesOf(fsType: string): { name: string; examples: string[] }[] {
  const rules = kindNamed(fsType).optionRules()
  return [...rules].map(([name, { example }]) => ({ name, examples: example.split(' or ') }))
}

function optionTable(fsType: string, names: readonly string[]): string {
  const rules = rulesOf(fsType).filter(({ name }) => names.includes(name))
  const answers = rules.map(({ name, examples }) => {
    const each = examples.map((example) => ({ example, ...answerTo(fsType, sourceOf(fsType), example) }))
    const named = each.filter(({ isAllowed }) => !isAllowed).map(({ example }) => example)
    const readOnly = each.some(({ isForReadOnly }) => isForReadOnly) ? '; with `readOnly: true` alone' : ''
    const what = named.length === examples.length ? '' : ` ${named.map(code).join(', ')}`
    const leave = named.length === 0 ? '' : `; **a rule must name${what === '' ? ' it' : what}**`
    return [written(examples), `${textOf(fsType, name)}${readOnly}${leave}`]
  })
  return table(['option', 'meaning'], answers)
}

/** `vers=4.2`, `4.1` */
function written([first = '', ...more]: readonly string[]): string {
  return [first, ...more.map((example) => example.slice(example.indexOf('=') + 1))].map(code).join(', ')
}

function textOf(fsType: string, name: string): string {
  const text = MOUNT_OPTION_TEXTS[fsType]?.[name]
  if (text === undefined)
    throw new Error(`no text for ${fsType}'s option ${name}: see scripts/docs/kind-descriptions.ts`)
  return text
}
