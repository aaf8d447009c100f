import * as fs from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** At most so many test files are run for a mutant; those with the fewest imports first. */
const MOST_FILES = 25

/** Which test files import a file of src, by what imports what in the checkout. */
export class ImportGraph {
  readonly #root: string
  readonly #importers = new Map<string, string[]>()
  readonly #importCounts = new Map<string, number>()

  /** @param root of the checkout */
  constructor(root: string) {
    this.#root = root
    for (const file of fs.globSync('{src,driver,test}/**/*.ts', { cwd: root })) {
      const text = fs.readFileSync(join(root, file), 'utf8')
      const imported = [...text.matchAll(/\bfrom '(\.[^']+)'|\bimport\('(\.[^']+)'\)/g)]
      this.#importCounts.set(file, imported.length)
      for (const [, from, dynamic] of imported) {
        const target = relative(root, join(root, dirname(file), from ?? dynamic ?? ''))
        this.#importers.set(target, [...(this.#importers.get(target) ?? []), file])
      }
    }
  }

  /**
   * Finds the tests that import a file. Where none does, those that import its importers, and so on.
   * @returns unit tests and kernel tests, in the order in which they are run
   */
  findTests(file: string): { unit: string[]; kernel: string[] } {
    const seen = new Set([file])
    for (let level = [file]; level.length > 0; ) {
      const next = level.flatMap((one) => this.#importers.get(one) ?? []).filter((one) => !seen.has(one))
      for (const one of next) seen.add(one)
      const tests = [...new Set(next)].filter((one) => one.endsWith('.test.ts'))
      const count = (one: string) => this.#importCounts.get(one) ?? 0
      tests.sort((a, b) => count(a) - count(b) || a.localeCompare(b))
      const isUnit = (one: string) => isUnitTest(this.#root, one)
      const found = {
        unit: tests.filter(isUnit).slice(0, MOST_FILES),
        kernel: tests.filter((one) => !isUnit(one)).slice(0, MOST_FILES),
      }
      if (tests.length > 0) return found
      level = [...new Set(next)]
    }
    return { unit: [], kernel: [] }
  }
}

/** Rooms of src have unit tests, unless their names say that they need a kernel. */
function isUnitTest(root: string, file: string): boolean {
  return fs.existsSync(join(root, 'src', file.split('/')[1] ?? '')) && !file.endsWith('.kernel.test.ts')
}
