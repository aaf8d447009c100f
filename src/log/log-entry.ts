/** The facts in a line of the log. They depend on the verb, and on the version of modekeep that wrote the line. */
export type LogEntry = Readonly<Record<string, unknown>>

/** Returns undefined if the line is not a JSON object. */
export function parseLogEntry(line: string): LogEntry | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isLogEntry(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function isLogEntry(value: unknown): value is LogEntry {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
