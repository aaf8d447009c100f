import {
  type OptionMapping,
  SUPPORTED_DRIVERS,
  type SupportedDriver,
  UNSUPPORTED_DRIVERS,
} from '../../src/migrate/drivers.ts'
import { between, code, table } from './table.ts'

const MARKS = ['<!-- Written by "npm run docs" from src/migrate/drivers.ts. -->\n', '\n<!-- End. -->'] as const

/** The page with the keys of each driver that "modekeep migrate" knows. @throws {Error} for one without a place for them */
export function withDriverTables(page: string): string {
  const known = table(['driver', 'theirs', "modekeep's"], SUPPORTED_DRIVERS.flatMap(rowsOf))
  const others = table(
    ['driver', 'its options', 'its Secret', 'what to do'],
    UNSUPPORTED_DRIVERS.map(({ names, options, secretKeys, why, remedy }) => [
      codes(names),
      codes(options),
      codes(secretKeys) || '–',
      `${why}: ${remedy}`,
    ]),
  )
  const rest = 'Volumes of these drivers stay as they are, and `migrate` says what to do:'
  return between(page, MARKS, `${known}\n\n${rest}\n\n${others}`)
}

const codes = (words: readonly string[]) => words.map(code).join(', ')

function rowsOf(driver: SupportedDriver): string[][] {
  const { names, fsType, options, secretKeys, appliesGroup: givesGroup } = driver
  const [first = ''] = names
  const rows = [
    ['(no `fsType` is read)', code(`fsType: ${fsType}`)],
    ...Object.entries(options).map(([key, fate]) => [code(key), fateText(driver, fate)]),
    ...(secretKeys.length > 0
      ? [
          [
            `Secret of type ${code(first)}: ${codes(secretKeys)}`,
            `Secret of type ${code('modekeep/fs')}: the same keys`,
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
  return rows.map((row, at) => [at === 0 ? code(first) : '', ...row])
}

function fateText({ fsType }: SupportedDriver, fate: OptionMapping): string {
  const source = code(`source: ${fsType === 'nfs' ? 'server:/directory' : '//server/share'}`)
  switch (fate.to) {
    case 'source':
      return source
    case 'server':
      return `the server in ${source}`
    case 'path':
      return `the rest of ${source}`
    case 'mountOptions':
      return `${code('mountOptions')}: those of [options](options.md#${fsType === 'nfs' ? 'nfs-and-nfs4' : fsType})`
    case 'nothing':
      return `none: ${fate.why}; ${fate.remedy}`
  }
}
