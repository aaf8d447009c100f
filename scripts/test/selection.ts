import * as fs from 'node:fs'

/** What needs neither root nor dist/modekeep, by folder: the rooms of src, and the promises that memory can hold. */
const OF_UNITS = ['architecture', 'conformance']
/** The end of the names of a room's tests that need a kernel, its sockets, programs or the executable. */
const NO_UNIT = 'test/**/*.kernel.test.ts'

/** Arguments for vitest: the tests that an engineer runs while typing. */
export function unitTests(): string[] {
  return [...unitFolders(), '--exclude', NO_UNIT]
}

/** Arguments for vitest: all others. */
export function otherTests(): string[] {
  const kernels = new Set(fs.globSync(NO_UNIT))
  const isUnit = (file: string) => !kernels.has(file) && unitFolders().some((folder) => file.startsWith(folder))
  return fs.globSync('test/**/*.test.ts').filter((file) => !isUnit(file))
}

function unitFolders(): string[] {
  const rooms = fs.readdirSync('src').filter((room) => fs.existsSync(`test/${room}`))
  return [...rooms, ...OF_UNITS].map((folder) => `test/${folder}/`)
}

/** Arguments for vitest: the files that do more in a long run than in a short one (test/helpers/size.ts). */
export function sizedTests(): string[] {
  return fs.globSync('test/**/*.test.ts').filter(isSized).sort()
}

export function isSized(file: string): boolean {
  return /\b(sized|holds|holdsAsync|runs|onEveryStage|onKernelStages)[<(]|\bFULL\b/.test(fs.readFileSync(file, 'utf8'))
}
