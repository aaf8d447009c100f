import type { Job, Said } from '../src/csi/jobs.ts'
import { work } from '../src/csi/work.ts'
import { linesOf } from '../src/host/lines.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { forbidCoreDumps } from '../src/host/linux/secrets.ts'
import { nodeFs } from '../src/host/read-file.ts'
import { callLog } from '../src/log/call-log.ts'
import { appendLine } from '../src/log/log-file.ts'
import type { WalkCounts } from '../src/ownership/walk/report.ts'
import { messageOf } from '../src/refusal/refusal.ts'
import { readConfig } from './config.ts'
import { closeStderr, writeAll } from './streams.ts'

/** What they are called in the log: what they do is what FlexVolume's calls of these names do. */
const VERBS = { publish: 'mount', unpublish: 'unmount', stats: 'stats' } as const

/** Does the jobs that the server writes to stdin, one after the other, until that ends. */
export async function workForServer(env: NodeJS.ProcessEnv): Promise<void> {
  closeStderr()
  process.on('uncaughtException', (error) => {
    say({ outcome: { failure: { code: 'INTERNAL', message: `modekeep failed: ${messageOf(error)}` } } })
    process.exit(1)
  })
  for await (const line of linesOf(process.stdin)) say({ outcome: await done(JSON.parse(line), env) })
}

async function done(job: Job, env: NodeJS.ProcessEnv) {
  // As a call of its own would: the configuration may be another one by now.
  const { config, faults } = await readConfig(env)
  const { directory, volumeId } = job
  const facts = { verb: VERBS[job.do], directory, door: 'csi', volumeId }
  const log = callLog(facts, config.logLevel, (line) => appendLine(nodeFs, config.logFile, line))
  const progress = (counts: WalkCounts) => say({ progress: counts })
  return work(job, { host: linuxHost, config, mayHang: true, log, progress, configFaults: faults, forbidCoreDumps })
}

/** A server that is gone hears nothing: the job goes on. */
function say(said: Said): void {
  writeAll(`${JSON.stringify(said)}\n`)
}
