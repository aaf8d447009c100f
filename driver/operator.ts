import * as fs from 'node:fs'
import { isatty } from 'node:tty'
import { runOperatorCommand } from '../src/cli/operate.ts'
import { readConfig } from '../src/config/read-config.ts'
import { startWorkers } from '../src/kernel/linux/child-process.ts'
import { linuxDiagnosis } from '../src/kernel/linux/diagnosis.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import { RESIDENT_WORKER_VERB } from '../src/kernel/worker-process.ts'
import { watchNodeMounts } from '../src/repair/watch.ts'
import { computeSilenceLimitMs } from '../src/worker/given-up.ts'
import { keepResidentWorker } from '../src/worker/resident.ts'
import {
  callBeforeTermination,
  createTerminationSignal,
  GLIBC_VERSION,
  keepHeapSmall,
  MODEKEEP_VERSION,
  startThread,
} from './process.ts'
import { printResult, writeBytesToStdout } from './streams.ts'

const DEFAULT_TERMINAL_COLUMNS = 80
const DEFAULT_TERMINAL_ROWS = 24

/** Runs an operator's verb on this node. @returns the exit status */
export function runOperatorVerb(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { isSea } = process.getBuiltinModule('node:sea')
  return runOperatorCommand({
    argv,
    env,
    versions: {
      version: MODEKEEP_VERSION,
      node: process.versions.node,
      glibc: GLIBC_VERSION,
      arch: process.arch,
    },
    host: linuxHost,
    isolatesWalks: true,
    fs,
    diagnosis: linuxDiagnosis,
    executable: isSea() ? process.execPath : undefined,
    isRoot: process.geteuid?.() === 0,
    write: printResult,
    writeBytes: writeBytesToStdout,
    isTerminal: isatty,
    columns: (stream) => {
      if (!isatty(stream)) return undefined
      // A terminal of unknown size reports 0 columns.
      return (stream === 1 ? process.stdout : process.stderr).columns || DEFAULT_TERMINAL_COLUMNS
    },
    rows: (stream) =>
      isatty(stream) ? (stream === 1 ? process.stdout : process.stderr).rows || DEFAULT_TERMINAL_ROWS : undefined,
    workingDirectory: () => process.cwd(),
    readConfig: (file) => readConfig(env, file),
    onInterrupt: callBeforeTermination,
    watch(heal, events) {
      keepHeapSmall()
      const startMountWatch = (stop: number) => startThread('mount-watch', stop)
      return watchNodeMounts(heal, { ...events, signal: createTerminationSignal(), startMountWatch })
    },
    serveHealth: async (endpoint, sources) =>
      (await import('../src/metrics/health-server.ts')).serveHealth(endpoint, sources),
    answerCalls: (config) => keepResidentWorker(startWorkers(RESIDENT_WORKER_VERB, env), computeSilenceLimitMs(config)),
    metrics: async (session) => (await import('../src/metrics/expose.ts')).writeMetrics(fs, session, MODEKEEP_VERSION),
    exposeMetrics: async (session, output) => {
      const { writeMetrics, writeTextfile } = await import('../src/metrics/expose.ts')
      await writeMetrics(fs, session, MODEKEEP_VERSION, (text) => {
        if (output === undefined) printResult(text)
        else writeTextfile(session.host, output, text)
      })
    },
    runInstaller: async (command, isJson) => (await import('./install.ts')).runInstaller(command, isJson, env),
    runMigration: async (command, isJson) => (await import('./migrate.ts')).runMigrateCommand(command, isJson),
    runCsi: async (command) => (await import('./csi.ts')).runCsiCommand(command, env),
    runNri: async (command) => (await import('./nri.ts')).runNriCommand(command, env),
    runPlugin: async (command) => (await import('./device-plugin.ts')).runDevicePluginCommand(command),
  })
}
