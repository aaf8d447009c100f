import type { OutputLine } from '../../src/cli/output/output.ts'

/** What a line for people says, and how. */
export function splitLine(line: OutputLine | undefined): { text?: string; style?: string } {
  return typeof line === 'string' ? { text: line } : (line ?? {})
}
