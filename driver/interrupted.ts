import { interruptedText } from '../src/operator/text/trouble.ts'
import type { Work } from '../src/operator/verbs/command.ts'
import { writeAll } from './streams.ts'

const STDERR = 2

/**
 * Ctrl-C ends the process at once, as ever, and first says what stands. Verbs that only look say nothing.
 * @param clear takes a progress line away
 * @returns ends the waiting
 */
export function sayWhenInterrupted(command: Work, clear: () => void): () => void {
  const text = interruptedText(command)
  if (text === undefined) return () => {}
  const listeners = (['SIGINT', 'SIGTERM'] as const).map((signal) => {
    const listener = () => {
      clear()
      writeAll(`modekeep: ${text}\n`, STDERR)
      process.off(signal, listener)
      process.kill(process.pid, signal)
    }
    process.on(signal, listener)
    return [signal, listener] as const
  })
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
  }
}
