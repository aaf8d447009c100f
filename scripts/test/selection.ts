import * as fs from 'node:fs'

/** What needs neither root nor dist/modekeep, by folder: the rooms of src, and the promises that memory can hold. */
const UNIT_TEST_FOLDERS = ['architecture', 'conformance']
/** The end of the names of a room's tests that need a kernel, its sockets, programs or the executable. */
const KERNEL_TEST_PATTERN = 'test/**/*.kernel.test.ts'

/** Arguments for vitest: the tests that an engineer runs while typing. */
export function selectUnitTests(): string[] {
  return [...listUnitTestFolders(), '--exclude', KERNEL_TEST_PATTERN]
}

/** Arguments for vitest: all others. */
export function selectOtherTests(): string[] {
  const kernels = new Set(fs.globSync(KERNEL_TEST_PATTERN))
  const isUnit = (file: string) => !kernels.has(file) && listUnitTestFolders().some((folder) => file.startsWith(folder))
  return fs.globSync('test/**/*.test.ts').filter((file) => !isUnit(file))
}

function listUnitTestFolders(): string[] {
  const rooms = fs.readdirSync('src').filter((room) => fs.existsSync(`test/${room}`))
  return [...rooms, ...UNIT_TEST_FOLDERS].map((folder) => `test/${folder}/`)
}

/** Arguments for vitest: the files that do more in a long run than in a short one (test/helpers/size.ts). */
export function selectSizedTests(): string[] {
  return fs.globSync('test/**/*.test.ts').filter(isSizedTestFile).sort()
}

export function isSizedTestFile(file: string): boolean {
  return /\b(sized|holds|holdsAsync|runs|onEveryStage|onKernelStages)[<(]|\bFULL\b/.test(fs.readFileSync(file, 'utf8'))
}
