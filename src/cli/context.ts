import type * as NodeFs from 'node:fs'
import type { NodeConfig } from '../config/defaults.ts'
import type { Fault } from '../errors/fault.ts'
import type { Host } from '../kernel/host.ts'
import type { Session } from '../state/session.ts'
import type { DoctorContext } from './commands/doctor.ts'
import type { NodeWatcher } from './commands/heal.ts'
import type { CommandOfVerb } from './commands/index.ts'
import type { HealthServerStarter } from './commands/options.ts'

/** File descriptors of stdout and stderr. */
type OutputDescriptor = 1 | 2

/** The process that runs a command: arguments, streams, host, and the entries of verbs that driver/ starts. */
export interface OperatorContext extends Omit<DoctorContext, 'configuration'> {
  argv: readonly string[]
  env: Readonly<Record<string, string | undefined>>
  host: Host
  /** Writes the log. */
  fs: typeof NodeFs
  isRoot: boolean
  /** @returns false if the reader has closed the stream @throws {Refusal} if stdout cannot be written */
  write(text: string, to: OutputDescriptor): boolean
  /** Writes all bytes to stdout. @throws if stdout cannot be written or its reader has closed it */
  writeBytes(bytes: Uint8Array): Promise<void>
  isTerminal(stream: OutputDescriptor): boolean
  /** Returns the width of the stream's terminal; undefined if the stream is no terminal. */
  columns(stream: OutputDescriptor): number | undefined
  /** Returns the number of lines of the stream's terminal; undefined if the stream is no terminal. */
  rows(stream: OutputDescriptor): number | undefined
  workingDirectory(): string
  /** Reads the node's current configuration and every fault in its file. @param file read in place of the node's */
  readConfig(file?: string): Promise<{ file: string; config: NodeConfig; faults: Fault[] }>
  /** Calls `report` before Ctrl-C or SIGTERM ends the process, until it is disposed of. */
  onInterrupt(report: () => void): Disposable
  watch: NodeWatcher
  serveHealth: HealthServerStarter
  /** Keeps a worker to which the loader hands kubelet's calls, until it is disposed of. */
  answerCalls(config: NodeConfig): Disposable
  /** Each walk runs in a process of its own, because this process must not wait for a locked directory. */
  isolatesWalks?: true
  /** Returns all metrics in Prometheus' text format. */
  metrics(session: Session): Promise<string>
  exposeMetrics(session: Session, output: string | undefined): Promise<void>
  /** @returns the exit status */
  runInstaller(command: CommandOfVerb<'install' | 'uninstall'>, isJson: boolean): Promise<number>
  /** @returns the exit status */
  runMigration(command: CommandOfVerb<'migrate'>, isJson: boolean): Promise<number>
  runPlugin(command: CommandOfVerb<'device-plugin'>): Promise<number>
  runCsi(command: CommandOfVerb<'csi'>): Promise<number>
  runNri(command: CommandOfVerb<'nri'>): Promise<number>
}
