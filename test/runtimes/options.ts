import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface Options {
  /** Only cases whose name has this in it. */
  only: string
  /** Only this version of containerd. */
  containerd: string
  /** Where the logs of the node's programs go at the end; '' for nowhere. */
  logs: string
  /** Where what the run was made with and how it ended goes (docs/results); '' for nowhere. */
  results: string
}

export const USAGE = `Usage: npm run test:nri -- [OPTION]...
Creates containers as kubelet does on the containerd of other suites of Debian, with the built plugin. Needs root.

  --only TEXT         only the cases with this text in their name
  --containerd TEXT   only the containerd of this version, like 2.1
  --logs DIR          put the logs of containerd and modekeep there at the end
  --results FILE      say there what the run was made with and how it ended, for the table in the README
`

/** @throws {Error} which option is wrong */
export function readOptions(args: readonly string[]): Options | 'help' {
  const text = { type: 'string', default: '' } as const
  const { values } = parseArgs({
    args: [...args],
    options: { only: text, containerd: text, logs: text, results: text, help: { type: 'boolean', default: false } },
  })
  if (values.help) return 'help'
  const [logs, results] = [values.logs, values.results].map((path) => path && resolve(path)) as [string, string]
  return { only: values.only, containerd: values.containerd, logs, results }
}
