const UNITS: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 }

/** A number, alone or with k, m or g (of 1,024), as tmpfs(5) and most kinds of mount options have it; undefined for no such text. */
export function sizeOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^([1-9][0-9]{0,14})([kmg]?)$/i.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * (UNITS[unit.toLowerCase()] ?? 1)
}
