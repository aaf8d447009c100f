import { type NodeFsModule, openFileToRead } from '../kernel/read-file.ts'
import { type LogEntry, parseLogEntry } from './log-entry.ts'

/** The part at the end of the log that is read for warnings. A reader of the log's end does not see earlier ones. */
const LOG_TAIL_BYTES = 1 << 16
const WARNING_DEDUP_PERIOD_MS = 60 * 60_000

/**
 * Creates a check whether the end of the log has the same warning from the last hour, because kubelet repeats a failing call
 * every two minutes. The log is read once, at the first check; a log that cannot be read has no warnings. Never throws.
 */
export function createDuplicateWarningCheck(fs: NodeFsModule, file: string): (line: string) => boolean {
  let writtenAtMs: ReadonlyMap<string, number> | undefined
  return (line) => {
    writtenAtMs ??= indexWarnings(readLogTail(fs, file))
    const entry = parseLogEntry(line)
    const age = Date.now() - ((entry && writtenAtMs.get(identifyWarning(entry))) ?? Number.NaN)
    // After the clock was set back, a line from the future would count for longer.
    return age >= 0 && age < WARNING_DEDUP_PERIOD_MS
  }
}

/** Maps each warning to the time at which it was written last, in milliseconds. */
function indexWarnings(lines: readonly string[]): Map<string, number> {
  const entries = lines.map(parseLogEntry).filter((entry) => entry?.level === 'warn')
  return new Map(entries.map((entry = {}) => [identifyWarning(entry), Date.parse(String(entry.time))]))
}

/** Returns what equal warnings have in common: everything except their time and process id. */
function identifyWarning({ time: _time, pid: _pid, ...facts }: LogEntry): string {
  return JSON.stringify(facts)
}

/** Returns the last lines of the log. The first one may be incomplete. */
function readLogTail(fs: NodeFsModule, file: string): string[] {
  try {
    using log = openFileToRead(fs, file)
    const { size } = log.stat
    const bytes = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES))
    const length = fs.readSync(log.fd, bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('utf8', 0, length).split('\n').slice(0, -1)
  } catch {
    return []
  }
}
