import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { LogReader } from '../src/log/log-reader.ts'
import type { Line } from '../src/operator/text/line.ts'
import { logLine, podFilter } from '../src/operator/text/log.ts'
import type { LogsCommand } from '../src/operator/verbs/command.ts'

const LOOKS_EACH_MS = 250

/**
 * Shows the node's log. With `isFollowing` it stays until the process is ended, or nobody reads any more.
 * @param show writes one line, raw or for people; false: nobody reads
 */
export async function showLogs(
  { isFollowing, last, pod }: LogsCommand,
  file: string,
  show: (raw: string, line: () => Line) => boolean,
): Promise<void> {
  const isAbout = podFilter(pod)
  const reader = new LogReader(fs, file)
  const write = (raw: string) => show(raw, () => logLine(raw))
  try {
    if (!shown(tail(matching(reader.lines(), isAbout), last), write)) return
    while (isFollowing) {
      await setTimeout(LOOKS_EACH_MS)
      if (!shown(matching(reader.lines(), isAbout), write)) return
    }
  } finally {
    reader.close()
  }
}

function* matching(lines: Iterable<string>, isAbout: (raw: string) => boolean): Generator<string> {
  for (const raw of lines) if (raw !== '' && isAbout(raw)) yield raw
}

function shown(lines: Iterable<string>, write: (raw: string) => boolean): boolean {
  for (const raw of lines) if (!write(raw)) return false
  return true
}

/** The last so many, without holding more of them. */
function tail(lines: Iterable<string>, last: number | undefined): Iterable<string> {
  if (last === undefined) return lines
  const kept: string[] = []
  for (const line of lines) {
    kept.push(line)
    if (kept.length > 2 * last + 1000) kept.splice(0, kept.length - last)
  }
  return last === 0 ? [] : kept.slice(-last)
}
