import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Options as OfCluster } from '../cluster/options.ts'

export interface Options extends OfCluster {
  /** Only specs whose name has this in it. */
  focus: string
  /** Only those of a few minutes. */
  quick: boolean
}

export const USAGE = `Usage: npm run test:e2e -- [OPTION]...
Runs Kubernetes' own storage tests on the CSI driver, on a cluster of one node. Needs root.

  --kubernetes DIR   take Kubernetes' programs from there, as test:cluster does, and e2e.test and agnhost
                     (default: 1.20.2, built once)
  --focus TEXT       only the specs with this text in their name
  --quick            only short specs, some of each kind
  --results FILE     write versions and verdicts there, as JSON
  --logs DIR         put the logs of the suite, of the cluster's programs and of modekeep there at the end
`

/** @throws {Error} which option is wrong */
export function readOptions(args: readonly string[]): Options | 'help' {
  const text = { type: 'string', default: '' } as const
  const flag = { type: 'boolean', default: false } as const
  const options = { kubernetes: text, focus: text, results: text, logs: text, quick: flag, help: flag }
  const { values } = parseArgs({ args: [...args], options })
  if (values.help) return 'help'
  const path = (value: string) => value && resolve(value)
  const [kubernetes, results, logs] = [path(values.kubernetes), path(values.results), path(values.logs)]
  return { kubernetes, results, logs, only: '', focus: values.focus, quick: values.quick }
}
