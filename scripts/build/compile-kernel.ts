import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'
import { FREESTANDING_FLAGS, getCompiler } from './compilers.ts'

const ROOT = join(import.meta.dirname, '../..')
const KERNEL_DIRECTORY = join(ROOT, 'driver/kernel')

/** A shared object of one page or two that needs no other: Node itself has what it does not define. */
const KERNEL_ADDON_FLAGS = [
  '-O2',
  '-fPIC',
  '-shared',
  '-s',
  '-Wl,-z,now',
  '-Wl,-z,noseparate-code',
  '-Wl,--hash-style=gnu',
  `-I${join(ROOT, 'node_modules/node-api-headers/include')}`,
]

export const resolveKernelAddonFile = (arch: string): string => join(KERNEL_DIRECTORY, `${arch}.node`)

/** driver/kernel as an addon of Node's. */
export async function compileKernelAddon(arch: string, workDirectory: string): Promise<Buffer> {
  const { gcc, flags } = getCompiler(arch)
  const addon = join(workDirectory, `${arch}.node`)
  await execa(gcc, [...FREESTANDING_FLAGS, ...KERNEL_ADDON_FLAGS, ...flags, 'kernel.c', '-o', addon], {
    cwd: KERNEL_DIRECTORY,
  })
  return fs.readFile(addon)
}

/**
 * The same for a test on this machine: with sources of its own in place of the kernel, and a libc.
 * @param stand a C function with the parameters of `sys`
 */
export async function compileTestKernelAddon(stand: string, sources: readonly string[], addon: string): Promise<void> {
  const { gcc } = getCompiler(process.arch)
  const own = KERNEL_ADDON_FLAGS.filter((flag) => flag !== '-s')
  const all = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-fvisibility=hidden', ...own, `-DSYSTEM_CALL=${stand}`]
  await execa(gcc, [...all, `-I${KERNEL_DIRECTORY}`, join(KERNEL_DIRECTORY, 'kernel.c'), ...sources, '-o', addon])
}
