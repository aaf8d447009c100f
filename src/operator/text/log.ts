import type { Line } from './line.ts'

type Entry = Readonly<Record<string, unknown>>

/** One line of the log for people; what is no JSON object is shown as it is. */
export function logLine(raw: string): Line {
  const entry = parsed(raw)
  if (entry === undefined) return { text: raw }
  const { time, level, verb, outcome, durationMs } = entry
  const took = typeof durationMs === 'number' ? `${durationMs} ms` : ''
  const head = [
    text(time).padEnd(24),
    text(level).padEnd(5),
    text(verb).padEnd(8),
    text(outcome).padEnd(7),
    took.padStart(10),
  ].join(' ')
  const subject = text(entry.pod) || text(entry.source) || text(entry.directory)
  const line = [head, subject, details(entry).join('; ')].filter((part) => part !== '').join('  ')
  const style = level === 'error' ? 'fault' : level === 'warn' ? 'notice' : undefined
  return { text: line, ...(style && { style }) }
}

/** Lines about one pod: by its UID, which is in its paths, or by NAMESPACE/NAME, by which its UID is learned. */
export function podFilter(pod: string | undefined): (raw: string) => boolean {
  if (pod === undefined) return () => true
  if (!pod.includes('/')) return (raw) => raw.includes(`/pods/${pod}/`)
  const places = new Set<string>()
  return (raw) => {
    if (raw.includes(JSON.stringify(pod))) {
      const entry = parsed(raw)
      const place = entry?.pod === pod ? /^.*\/pods\/[^/]+\//.exec(text(entry.directory))?.[0] : undefined
      if (place) places.add(place)
      return true
    }
    return [...places].some((place) => raw.includes(place))
  }
}

function parsed(raw: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(raw)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Entry) : undefined
  } catch {
    return undefined
  }
}

function details(entry: Entry): string[] {
  const { error, message, decision, reason, given, why, ownership, inodes, restore, found, removed } = entry
  const healed = Array.isArray(found) ? found.map((one: Entry) => `${text(one.outcome)} ${text(one.directory)}`) : []
  return [
    text(error) || text(message),
    [text(decision), text(reason)].filter(Boolean).join(': '),
    text(given) && `ownership ${text(given)}: ${text(why)}`,
    text(ownership),
    counts(typeof inodes === 'object' && inodes !== null ? (inodes as Entry) : entry),
    text(restore),
    ...healed,
    Array.isArray(removed) ? `${removed.length} removed` : '',
  ].filter((part) => part !== '')
}

function counts({ visited, changed, left }: Entry): string {
  if (typeof visited !== 'number' || typeof changed !== 'number') return ''
  const reasons = Object.keys(typeof left === 'object' && left !== null ? left : {})
  return `${visited} looked at, ${changed} changed${reasons.length > 0 ? `, left alone: ${reasons.join(', ')}` : ''}`
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
