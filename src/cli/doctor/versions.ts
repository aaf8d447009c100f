import { type CheckResult, createOkResult } from './findings.ts'

/** Versions of modekeep and of the parts in its executable, which no package of the node lists. */
export interface ExecutableVersions {
  version: string
  node: string
  /** The C library; undefined if the sources run, with the node's. */
  glibc: string | undefined
  /** Processor architecture. */
  arch: string
}

export function* reportVersions({ version, node, glibc }: ExecutableVersions): Generator<CheckResult> {
  yield createOkResult(`modekeep ${version} with Node ${node}${glibc === undefined ? '' : ` and glibc ${glibc}`}`)
}
