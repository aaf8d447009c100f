import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface Options {
  /** Files of the volume in whose walk the kubelet is killed. */
  files: number
  /** Only cases whose name has this in it. */
  only: string
  /** Only the cases that hold the README's main promises. */
  small: boolean
  /** Where the logs of the node's programs go at the end; '' for nowhere. */
  logs: string
  /** Where what the run was made with and how it ended goes (docs/results); '' for nowhere. */
  results: string
}

export const USAGE = `Usage: npm run test:kubelet -- [OPTION]...
Runs pods of a real kubelet on the built driver, beside a driver that leaves fsGroup to the kubelet. Needs root.

  --files N      files of the volume in whose walk the kubelet is killed (default: 300000)
  --only TEXT    only the cases with this text in their name
  --small        only the cases that npm test runs
  --logs DIR     put the logs of kubelet, containerd and modekeep there at the end
  --results FILE say there what the run was made with and how it ended, for the table in the README
`

/** @throws {Error} which option is wrong */
export function readOptions(args: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      files: { type: 'string', default: '300000' },
      only: { type: 'string', default: '' },
      small: { type: 'boolean', default: false },
      logs: { type: 'string', default: '' },
      results: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const files = Number(values.files)
  if (!Number.isSafeInteger(files) || files < 1000) throw new Error('--files wants a number from 1000 on')
  const [logs, results] = [values.logs, values.results].map((path) => path && resolve(path)) as [string, string]
  return { files, only: values.only, small: values.small, logs, results }
}
