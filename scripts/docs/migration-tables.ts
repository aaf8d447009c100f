import {
  type OptionMapping,
  SUPPORTED_DRIVERS,
  type SupportedDriver,
  UNSUPPORTED_DRIVERS,
} from '../../src/migrate/drivers.ts'
import { formatMarkdownCode, formatMarkdownTable, replaceBetweenMarks } from './table.ts'

const MIGRATION_TABLE_MARKS = [
  '<!-- Written by "npm run docs" from src/migrate/drivers.ts. -->\n',
  '\n<!-- End. -->',
] as const

/** The page with the keys of each driver that "modekeep migrate" knows. @throws {Error} for one without a place for them */
export function insertDriverTables(page: string): string {
  const known = formatMarkdownTable(['driver', 'theirs', "modekeep's"], SUPPORTED_DRIVERS.flatMap(createDriverRows))
  const others = formatMarkdownTable(
    ['driver', 'its options', 'its Secret', 'what to do'],
    UNSUPPORTED_DRIVERS.map(({ names, options, secretKeys, why, remedy }) => [
      formatCodeList(names),
      formatCodeList(options),
      formatCodeList(secretKeys) || '–',
      `${why}: ${remedy}`,
    ]),
  )
  const rest = 'Volumes of these drivers stay as they are, and `migrate` says what to do:'
  return replaceBetweenMarks(page, MIGRATION_TABLE_MARKS, `${known}\n\n${rest}\n\n${others}`)
}

const formatCodeList = (words: readonly string[]) => words.map(formatMarkdownCode).join(', ')

function createDriverRows(driver: SupportedDriver): string[][] {
  const { names, fsType, options, secretKeys, appliesGroup: givesGroup } = driver
  const [first = ''] = names
  const rows = [
    ['(no `fsType` is read)', formatMarkdownCode(`fsType: ${fsType}`)],
    ...Object.entries(options).map(([key, fate]) => [formatMarkdownCode(key), describeOptionMapping(driver, fate)]),
    ...(secretKeys.length > 0
      ? [
          [
            `Secret of type ${formatMarkdownCode(first)}: ${formatCodeList(secretKeys)}`,
            `Secret of type ${formatMarkdownCode('modekeep/fs')}: the same keys`,
          ],
        ]
      : []),
    ...(givesGroup
      ? [
          [
            "the pod's `fsGroup` as `uid` and `gid`",
            '`ownership: auto`: as `gid`; write `uid=` into `mountOptions` if the owner matters',
          ],
        ]
      : []),
  ]
  return rows.map((row, at) => [at === 0 ? formatMarkdownCode(first) : '', ...row])
}

function describeOptionMapping({ fsType }: SupportedDriver, fate: OptionMapping): string {
  const source = formatMarkdownCode(`source: ${fsType === 'nfs' ? 'server:/directory' : '//server/share'}`)
  switch (fate.to) {
    case 'source':
      return source
    case 'server':
      return `the server in ${source}`
    case 'path':
      return `the rest of ${source}`
    case 'mountOptions':
      return `${formatMarkdownCode('mountOptions')}: those of [options](options.md#${fsType === 'nfs' ? 'nfs-and-nfs4' : fsType})`
    case 'nothing':
      return `none: ${fate.why}; ${fate.remedy}`
  }
}
