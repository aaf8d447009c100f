import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { runAsNode } from '../../kubelet/confine/run-as-node.ts'
import { provide } from '../provide.ts'

export interface TranscriptOptions {
  /** What `npm run release` made. */
  release: string
  /** The file for the transcript. */
  output: string
}

const USAGE = `Usage: npm run test:transcript -- [OPTION]...
Installs a release on a fresh cluster of one node by the commands of the pages alone, uses it and takes it away. Needs root.

  --release DIR   what "npm run release" made (default: dist/release)
  --output FILE   for the transcript (default: dist/transcript.txt)
`

runAsNode({
  command: 'test:transcript',
  what: 'the release on a fresh cluster, by its pages',
  machine: 'cluster',
  // As the cases': of both one at a time can be run.
  name: 'modekeep-cluster-test',
  module: `${import.meta.dirname}/run.ts`,
  usage: USAGE,
  readOptions(args: readonly string[]): TranscriptOptions | 'help' {
    const { values } = parseArgs({
      args: [...args],
      options: {
        release: { type: 'string', default: 'dist/release' },
        output: { type: 'string', default: 'dist/transcript.txt' },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) return 'help'
    const release = resolve(values.release)
    if (!fs.existsSync(`${release}/SHA256SUMS`))
      throw new Error(`${release} has no release: run "npm run release" first`)
    return { release, output: resolve(values.output) }
  },
  provide: (_, clock, say) => ({ programs: provide('', clock, say) }),
})
