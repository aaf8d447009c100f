import { expect, it } from 'vitest'
import { journalVerb } from '../../../src/cli/commands/journal.ts'
import type { JournalDocument } from '../../../src/cli/commands/journal-export.ts'
import { splitLine } from '../../helpers/line.ts'

const document: JournalDocument = {
  verb: 'journal',
  action: 'export',
  file: '/root/data.journal',
  // As long as one can be.
  volume: `${'0'.repeat(32)}-${'f'.repeat(16)}-${'f'.repeat(16)}`,
  source: '/srv/data',
  isDry: false,
  outcome: 'exported',
  refusal: null,
  recorded: { group: 4294967294, groupAccess: 'grant', complete: false, left: null, restorePending: true },
  busy: true,
  bytes: 12345,
}
const shown = (more: Partial<JournalDocument>) =>
  journalVerb.lines({ ...document, ...more }).map((line) => splitLine(line).text)

it('journal export prints the content of the file in 80 columns', () => {
  expect(shown({})).toEqual([
    '/root/data.journal: exported, 12345 bytes',
    `  volume  ${document.volume}`,
    '  source  /srv/data',
    '  group   4294967294, groupAccess grant',
    '  state   interrupted, restore pending',
    'a walk or restore is under way: what it did later is not in the file',
  ])
  expect(shown({ recorded: null }).filter((line) => (line?.length ?? 0) > 80)).toEqual([])
})

it('journal export to stdout prints only remarks on stderr', () => {
  expect(shown({ file: '-', busy: false })).toEqual([])
  expect(shown({ file: '-', recorded: null })).toEqual([
    'a walk or restore is under way: what it did later is not in the file',
    'there is no record that can be read: only the journal is in the file',
  ])
})

it('journal import prints the next command, or the refusal that it would get', () => {
  const imported = { action: 'import', outcome: 'imported', busy: false } as const
  const text = `text-${'a1'.repeat(20)}`
  expect(shown(imported).at(-1)).toBe('"modekeep restore /srv/data" puts it back')
  expect(shown({ ...imported, volume: text }).at(-1)).toBe(`"modekeep restore ${text}" puts it back`)
  expect(shown({ ...imported, outcome: 'would import', isDry: true, refusal: 'why' })).toEqual(
    expect.arrayContaining([
      '/root/data.journal: would import, 12345 bytes. Nothing was changed.',
      'import would be refused now: why',
    ]),
  )
})
