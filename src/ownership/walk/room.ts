/** Of the places of a table at most so many are taken: a search ends at a free one. */
export const FULLEST = 0.8
export const FEWEST_PLACES = 64
const MANY = 1 << 20

/** How many places a table is to have when its places are taken. @param live how many are not to be given up */
export function roomFor(live: number, places: number): number {
  if (live < places * FULLEST * FULLEST) return places
  // The old table and the new one are there together: large ones grow by little.
  return Math.ceil(places * (places < MANY ? 2 : 1.25))
}
