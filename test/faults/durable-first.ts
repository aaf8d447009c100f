import { expect } from 'vitest'
import type { TracedCall } from '../helpers/strace-text.ts'
import type { After } from './scenario.ts'

const MAKES_DURABLE = /^(write|pwrite64|fsync|fdatasync|rename)$/
const OF_RECORDS = /(record\.json|reservation\.json|journal\.db(-wal)?)\b/
const CHANGES = /^(fchownat|setxattr|removexattr)$/

/** Records come before what they speak of: after one could not be written, no inode of a volume is changed. */
export function expectPreceded({ calls, fault }: After, stateDir: string): void {
  if (fault.name === 'KILL') return
  const failed = calls.findIndex(
    ({ name, text }) => isInjected(text) && MAKES_DURABLE.test(name) && isRecord(text, stateDir),
  )
  const lost = calls[failed]
  if (lost === undefined) return
  const file = fileOf(lost)
  for (const call of calls.slice(failed + 1)) {
    // What was tried again, and worked, is written.
    if (!call.failed && call.name === lost.name && fileOf(call) === file) return
    expect(!call.failed && CHANGES.test(call.name), `${call.text} follows ${lost.text}`).toBe(false)
  }
}

function isInjected(text: string): boolean {
  return text.endsWith('(INJECTED)')
}

function isRecord(text: string, stateDir: string): boolean {
  return text.includes(`${stateDir}/`) && OF_RECORDS.test(text)
}

function fileOf({ text }: TracedCall): string {
  return /^\w+\((?:\d+<([^>]*)>|"([^"]*)")/.exec(text)?.slice(1).find(Boolean) ?? ''
}
