import type { TarEntry } from '../../src/cli/output/tar.ts'

/** A file of a tree. Its directories come of themselves. */
export interface TreeFile {
  /** Relative, with `/`. */
  path: string
  bytes: Buffer
  isProgram?: boolean
}

/** The files below one directory and the directories above each, sorted by name, 0755 or 0644. */
export function createTreeEntries(top: string, files: readonly TreeFile[]): TarEntry[] {
  const paths = files.map(({ path }) => `${top}/${path}`)
  const directories = [...new Set(paths.flatMap(listParentDirectories))]
  return [
    ...directories.map((path) => ({ path, directory: true as const, mode: 0o755 })),
    ...files.map(({ bytes, isProgram }, n) => ({ path: paths[n] ?? '', bytes, mode: isProgram ? 0o755 : 0o644 })),
  ].sort((one, other) => (one.path < other.path ? -1 : 1))
}

function listParentDirectories(path: string): string[] {
  return [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index))
}
