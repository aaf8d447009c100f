import type { GcDocument } from '../actions/gc.ts'
import { aligned, type Line } from './line.ts'

type Item = GcDocument['items'][number]

const MOST_NAMES = 3

/** `gc` for people: what went, line by line, and what stays, by reason. */
export function gcLines({ isDry, items }: GcDocument): Line[] {
  const kept = items.filter(({ action }) => action === 'kept')
  const others = items.filter(({ action }) => action !== 'kept')
  const gone = others.filter(({ action }) => action !== 'failed').length
  const done = (action: Item['action']) => (isDry && action === 'removed' ? 'would be removed' : action)
  const title = isDry
    ? `${gone} would be removed, ${kept.length} kept. Nothing was changed.`
    : `${gone} removed, ${kept.length} kept`
  return [
    { text: title, style: 'strong' },
    ...styled(aligned(others.map(({ action, kind, name, reason }) => [done(action), kind, name, reason])), others),
    ...byReason(kept).flatMap(keptLines),
  ]
}

function styled(lines: readonly string[], items: readonly Item[]): Line[] {
  return lines.map((text, index) => (items[index]?.action === 'failed' ? { text, style: 'fault' } : { text }))
}

function byReason(items: readonly Item[]): Item[][] {
  return [...Map.groupBy(items, ({ kind, reason }) => `${kind} ${reason}`).values()]
}

function keptLines(items: Item[]): Line[] {
  const [{ kind, reason, name } = { kind: 'volume', reason: '', name: '' }] = items
  if (items.length === 1) return [{ text: `kept  ${kind} ${name}: ${reason}` }]
  const names = items.slice(0, MOST_NAMES).map((item) => item.name)
  const more = items.length - names.length
  return [
    { text: `kept  ${items.length} ${kind}s: ${reason}` },
    ...names.map((text) => ({ text: `      ${text}` })),
    ...(more > 0 ? [{ text: `      and ${more} more` }] : []),
  ]
}
