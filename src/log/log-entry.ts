/** What a line of the log says. Which facts there are depends on the verb, and on the version that wrote it. */
export type LogEntry = Readonly<Record<string, unknown>>

/** Undefined for a line that is no JSON object. */
export function logEntry(line: string): LogEntry | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isEntry(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function isEntry(value: unknown): value is LogEntry {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
