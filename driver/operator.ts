import * as fs from 'node:fs'
import { isatty } from 'node:tty'
import { operate } from '../src/cli/operate.ts'
import { linuxDiagnosis } from '../src/host/linux/diagnosis.ts'
import { linuxHost } from '../src/host/linux/index.ts'
import { readConfig } from './config.ts'
import { onInterrupt } from './signals.ts'
import { print, writeBytes } from './streams.ts'
import { VERSION } from './version.ts'
import { watchNode } from './watch.ts'

const DEFAULT_COLUMNS = 80
const DEFAULT_ROWS = 24

/** Runs an operator's verb on this node. @returns the exit status */
export function operateHere(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { isSea } = process.getBuiltinModule('node:sea')
  return operate({
    argv,
    env,
    versions: { version: VERSION, node: process.versions.node, arch: process.arch },
    host: linuxHost,
    isolatesWalks: true,
    fs,
    diagnosis: linuxDiagnosis,
    executable: isSea() ? process.execPath : undefined,
    isRoot: process.geteuid?.() === 0,
    write: print,
    writeBytes,
    isTerminal: isatty,
    columns: (stream) => {
      if (!isatty(stream)) return undefined
      // A terminal of unknown size reports 0 columns.
      return (stream === 1 ? process.stdout : process.stderr).columns || DEFAULT_COLUMNS
    },
    rows: (stream) =>
      isatty(stream) ? (stream === 1 ? process.stdout : process.stderr).rows || DEFAULT_ROWS : undefined,
    workingDirectory: () => process.cwd(),
    readConfig: (file) => readConfig(env, file),
    onInterrupt,
    watch: watchNode,
    serveHealth: async (endpoint, sources) => (await import('./health-server.ts')).serveHealth(endpoint, sources),
    metrics: async (session) => (await import('./metrics.ts')).formatMetrics(session),
    exposeMetrics: async (session, output) => (await import('./metrics.ts')).exposeMetrics(session, output),
    runInstaller: async (command, isJson) => (await import('./install.ts')).runInstaller(command, isJson, env),
    runMigration: async (command, isJson) => (await import('./migrate.ts')).migrateFile(command, isJson),
    runCsi: async (command) => (await import('./csi.ts')).csi(command, env),
    runNri: async (command) => (await import('./nri.ts')).nri(command, env),
    runPlugin: async (command) => (await import('./device-plugin.ts')).devicePlugin(command),
  })
}
