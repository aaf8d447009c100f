import { quoted } from '../../refusal/refusal.ts'

/** The fault of a word that is none of the verbs. */
export function noVerb(word: string, verbs: readonly string[]): string {
  const meant = nearest(word, verbs)
  return `there is no verb ${quoted(word)}: ${meant === undefined ? '' : `did you mean ${meant}? `}see "modekeep help"`
}

/** The one of `known` that was probably meant; undefined where none is close. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3))
  let best: string | undefined
  let least = most + 1
  for (const candidate of known) {
    const away = distance(word.toLowerCase(), candidate.toLowerCase())
    if (away < least) [best, least] = [candidate, away]
  }
  if (best !== undefined) return best
  const longer = known.filter((candidate) => word.length >= 2 && candidate.startsWith(word))
  return longer.length === 1 ? longer[0] : undefined
}

/** Letters to insert, delete, replace, or exchange with their neighbour (optimal string alignment). */
function distance(one: string, other: string): number {
  let before: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost)
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      if (swapped) least = Math.min(least, (before[j - 2] ?? 0) + 1)
      row.push(least)
    }
    before = last
    last = row
  }
  return last[other.length] ?? 0
}
