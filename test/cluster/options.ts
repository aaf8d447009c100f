import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface Options {
  /** Has programs of another version of Kubernetes; '' for those that are built. */
  kubernetes: string
  /** Only cases whose name has this in it. */
  only: string
  /** The file for what was seen, as JSON; '' for none. */
  results: string
  /** Where the logs of the cluster's programs go at the end; '' for nowhere. */
  logs: string
}

export const USAGE = `Usage: npm run test:cluster -- [OPTION]...
Runs the driver on a cluster of one node: etcd, API server, controller manager, scheduler, kubelet. Needs root.

  --kubernetes DIR   take kubelet, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl from there, and etcd,
                     containerd with its shim, runc and the network plugins, if they are there (default: 1.20.2, built once)
  --only TEXT        only the cases with this text in their name
  --results FILE     write versions and verdicts there, as JSON
  --logs DIR         put the logs of the cluster's programs and of modekeep there at the end
`

/** @throws {Error} which option is wrong */
export function readOptions(args: readonly string[]): Options | 'help' {
  const text = { type: 'string', default: '' } as const
  const { values } = parseArgs({
    args: [...args],
    options: { kubernetes: text, only: text, results: text, logs: text, help: { type: 'boolean', default: false } },
  })
  if (values.help) return 'help'
  const path = (value: string) => value && resolve(value)
  return {
    kubernetes: path(values.kubernetes),
    only: values.only,
    results: path(values.results),
    logs: path(values.logs),
  }
}
