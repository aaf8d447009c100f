// An import as namespace would copy node:fs name by name.
export const nodeFs = process.getBuiltinModule('node:fs')

/** node:fs, or memfs. */
export type Fs = typeof nodeFs
