// As a namespace it would be copied, name by name.
export const nodeFs = process.getBuiltinModule('node:fs')

/** node:fs, or memfs. */
export type Fs = typeof nodeFs
