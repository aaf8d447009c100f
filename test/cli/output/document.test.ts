import { describe, expect, it } from 'vitest'
import { OPERATOR_VERB_NAMES } from '../../../src/cli/commands/index.ts'
import { type PlanDocument, planVerb as verb } from '../../../src/cli/commands/plan.ts'
import { parseInodeType } from '../../../src/cli/node-state/survey.ts'
import { formatFileMode, formatJsonDocument, formatOutputLines } from '../../../src/cli/output/output.ts'
import { formatHelp } from '../../../src/cli/usage/help.ts'
import { escapeUnprintable } from '../../../src/errors/escape.ts'

// Colour, title, a line more, the C1 form of the same, a right-to-left override, a line separator, a lone surrogate.
const HOSTILE = '\x1b[31m\x1b]0;t\x07\r\nx\x9b2J\u202egnp\u2028\ud800'
const DRIVES = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

const plan: PlanDocument = {
  verb: 'plan',
  directory: `/srv/${HOSTILE}`,
  volume: 'v',
  group: 2000,
  groupAccess: 'keep',
  policy: 'OnRootMismatch',
  walks: true,
  refusal: `pod ${HOSTILE}`,
  busy: false,
  underWay: null,
  recorded: null,
  report: { visited: 3, changed: 2, alreadyRight: 0, left: { symlink: { count: 1, examples: [HOSTILE] } } },
  widened: 0,
  kubelet: { walks: true, touched: 3, changed: 3, widened: 2 },
  submounts: { count: 1, examples: [HOSTILE] },
  differences: [
    {
      path: HOSTILE,
      type: 'file',
      uid: 7,
      before: { gid: 5, mode: 0o4640 },
      after: { gid: 2000, mode: 0o4640 },
      kubelet: { gid: 2000, mode: 0o4660 },
    },
  ],
}

describe('text for an operator', () => {
  it('has no control characters from a file name', () => {
    const lines = formatOutputLines(verb.lines(plan), false).split('\n')
    expect(lines.filter((line) => DRIVES.test(line))).toEqual([])
    expect(lines.join('\n')).toContain('\\u{1b}[31m')
  })

  it('has no control characters from a file name as JSON, and a parser reads the same name', () => {
    const text = formatJsonDocument(plan)
    expect(text.slice(0, -1)).not.toMatch(DRIVES)
    const { verb: _, ...facts } = plan
    expect(JSON.parse(text)).toEqual({ apiVersion: 'modekeep/v1', kind: 'Plan', ...facts })
  })

  it('keeps letters of other scripts unchanged', () => {
    expect(escapeUnprintable('données – 日本語 🙂')).toBe('données – 日本語 🙂')
  })

  it('has each change in the form of ls: now, after modekeep, after kubelet', () => {
    const row = formatOutputLines(
      verb.lines({ ...plan, differences: plan.differences.map((d) => ({ ...d, path: 'sub/a' })) }),
      false,
    )
    expect(row).toMatch(/^ {2}-rwSr----- 7 5 +-rwSr----- 7 2000 +-rwSrw---- 7 2000 +sub\/a$/m)
    expect(row).toContain('Changes (the first 1 of 2)')
  })

  it('has escape sequences only if colour is enabled', () => {
    expect(formatOutputLines([{ text: 'a', style: 'strong' }, 'b'], true)).toBe('\x1b[1ma\x1b[0m\nb\n')
    expect(formatOutputLines([{ text: 'a', style: 'strong' }, 'b'], false)).toBe('a\nb\n')
  })

  it.each([
    [0o100644, '-rw-r--r--'],
    [0o100000, '----------'],
    [0o104711, '-rws--x--x'],
    [0o106644, '-rwSr-Sr--'],
    [0o042770, 'drwxrws---'],
    [0o041777, 'drwxrwxrwt'],
    [0o041776, 'drwxrwxrwT'],
    [0o010600, 'prw-------'],
    [0o140755, 'srwxr-xr-x'],
    [0o120777, 'lrwxrwxrwx'],
    [0o060660, 'brw-rw----'],
    [0o020666, 'crw-rw-rw-'],
  ])('shows mode %o as %s', (mode, text) => {
    expect(formatFileMode(parseInodeType(mode), mode)).toBe(text)
  })

  it.each([...OPERATOR_VERB_NAMES, undefined].map((topic) => [topic]))('has an example in the help of %s', (topic) => {
    expect(formatHelp(topic)).toMatch(/Examples?:\n {2}.*modekeep \w+/)
    expect(
      formatHelp(topic)
        .split('\n')
        .filter((line) => line.length > 110),
    ).toEqual([])
  })
})
