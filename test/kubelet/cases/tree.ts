import assert from 'node:assert/strict'
import * as fs from 'node:fs'

export const FSGROUP = 2000

export interface Facts {
  mode: string
  group: number
  changed: bigint
}

/** Mode, group and ctime of a directory and of everything below it, by path. */
export function look(directory: string): Map<string, Facts> {
  const names = ['.', ...fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()]
  return new Map(
    names.map((name) => {
      const { mode, gid, ctimeNs } = fs.lstatSync(`${directory}/${name}`, { bigint: true })
      return [name, { mode: octal(Number(mode)), group: Number(gid), changed: ctimeNs }]
    }),
  )
}

export const octal = (mode: number) => (mode & 0o7777).toString(8).padStart(4, '0')

export const modes = (facts: Map<string, Facts>) =>
  [...facts].filter(([name]) => name !== '.').map(([, { mode }]) => mode)

/** How many ctimes differ. */
export function moved(before: Map<string, Facts>, after: Map<string, Facts>): number {
  return [...before].filter(([name, { changed }]) => after.get(name)?.changed !== changed).length
}

/** Makes files with these modes, of root's. */
export function makeFiles(directory: string, files: Readonly<Record<string, number>>): string {
  fs.mkdirSync(directory, { recursive: true })
  for (const [name, mode] of Object.entries(files)) {
    fs.writeFileSync(`${directory}/${name}`, `${name}\n`)
    fs.chmodSync(`${directory}/${name}`, mode)
  }
  return directory
}

export const SIX = { test1: 0o644, test2: 0, test3: 0o410, test4: 0o111, test5: 0o440, test6: 0o660 }
export const SIX_MODES = Object.values(SIX).map(octal)
export const SIX_AS_KUBELET_MAKES_THEM = Object.values(SIX).map((mode) => octal(mode | 0o660))

/** @throws {Error} unless the control behaves as the case takes for granted */
export function control(what: string, actual: unknown, expected: unknown): void {
  assert.deepEqual(actual, expected, `the naive driver does not show the difference: ${what}`)
}
