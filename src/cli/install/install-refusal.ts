import { createFault } from '../../errors/fault.ts'
import { Refusal } from '../../errors/refusal.ts'

/** Creates a refusal of the installer, whose message has several lines. */
export function createInstallRefusal(lines: string | readonly string[], options?: ErrorOptions): Refusal {
  const list = typeof lines === 'string' ? [lines] : lines
  return new Refusal(
    list.map((line) => createFault('install', line)),
    options,
  )
}
