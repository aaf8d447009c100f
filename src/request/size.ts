const UNITS: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 }

/**
 * Parses a number with an optional suffix k, m or g (powers of 1,024), as tmpfs(5) and most mount options do. Returns
 * undefined for any other text.
 */
export function parseSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^([1-9][0-9]{0,14})([kmg]?)$/i.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * (UNITS[unit.toLowerCase()] ?? 1)
}
