import { createHash } from 'node:crypto'

// Kustomize spells its hashes without vowels and what looks like them.
const SPELLING: Readonly<Record<string, string>> = { 0: 'g', 1: 'h', 3: 'k', a: 'm', e: 't' }

/** The name that kustomize gives a generated ConfigMap: it ends in ten digits of its content's hash. */
export function nameWithHash(name: string, data: Readonly<Record<string, string>>): string {
  const sorted = Object.fromEntries(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
  // As Go writes JSON. Kustomize looks for the name where it is not, so it is always empty here.
  const text = JSON.stringify({ data: sorted, kind: 'ConfigMap', name: '' }).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 10)
  return `${name}-${digest.replace(/[013ae]/g, (digit) => SPELLING[digit] ?? digit)}`
}
