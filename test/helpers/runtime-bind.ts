import { execFileSync } from 'node:child_process'
import { compile } from '../race/compile.ts'

/** Binds source to target as a container runtime does: `ok`, or the name of the errno. */
export type RuntimeBind = (source: string, target: string, throughHandle?: boolean) => string

/** Compiled for the test that is running. */
export function createRuntimeBind(): RuntimeBind {
  const program = compile('real-mounts/bind.c')
  return (source, target, throughHandle = false) =>
    execFileSync(program, [...(throughHandle ? ['--fd'] : []), source, target], { encoding: 'utf8' }).trim()
}
