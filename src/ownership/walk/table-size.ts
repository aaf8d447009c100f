/** Maximum share of used slots: a search ends at a free one. */
export const MAX_LOAD = 0.8
export const MIN_SLOTS = 64
const LARGE_TABLE = 1 << 20

/**
 * Returns the new number of slots of a full table.
 * @param live number of entries that are kept
 */
export function computeSlots(live: number, slots: number): number {
  if (live < slots * MAX_LOAD * MAX_LOAD) return slots
  // The old and the new table exist at once, so a large one grows by little.
  return Math.ceil(slots * (slots < LARGE_TABLE ? 2 : 1.25))
}
