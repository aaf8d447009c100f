import type { Fault } from '../../errors/fault.ts'
import type { Session } from '../../state/session.ts'
import type { OutputLine } from '../output/output.ts'
import type { OptionName } from './options.ts'

/** The parsed arguments after a verb. */
export interface VerbArguments {
  /** Options by name; undefined for one without a value. */
  given: ReadonlyMap<string, string | undefined>
  words: readonly string[]
  faults: readonly Fault[]
  /** Adds a fault of the arguments. */
  refuse(reason: string, remedy?: string): void
  /** Returns the base of a relative path; called only for one. */
  workingDirectory: () => string
}

/** Describes a verb. Parsing, help, completion and the man page are generated from it. */
export interface VerbForm<Command = unknown> {
  /** Operands in the notation of the help: placeholders, and words to choose from. Undefined: the verb takes none. */
  operands?: string
  /** Required options, for the usage line. */
  needs?: string
  /** One line for the overview. */
  summary: string
  /** Paragraphs. */
  text: readonly string[]
  /** Descriptions of the options in the order of the help, without --help, and without --json if that prints one document. */
  options: Readonly<Partial<Record<OptionName, string>>>
  examples: readonly string[]
  /** Meaning of exit status 1 in addition to "failed or refused". */
  failure?: string
  read(args: VerbArguments): Command
}

/** Options for the display of a document. */
export interface DisplayOptions<Command> {
  /** The command whose document is displayed. */
  command?: Command
  /** Width of the terminal in columns; undefined: as wide as the content. */
  width?: number | undefined
}

/** A verb that inspects or changes the node, and reports the result as a document. */
export interface DocumentVerb<Command, Document> extends VerbForm<Command> {
  /** The verb never changes anything, and is not logged. */
  isLooking?: boolean
  /** Formats the document as text. */
  lines(document: Document, look?: DisplayOptions<Command>): OutputLine[]
  /** Message on stderr if `hasTrouble` turns a completed command into a failure. */
  trouble?: string
  hasTrouble?(document: Document): boolean
  /** The command writes data to stdout, so the document goes to stderr. */
  writesStdout?(command: Command): boolean
  /** Message on an interruption; undefined if the command changes nothing. */
  interrupted?(command: Command): string | undefined
}

export interface SessionVerb<Command, Document> extends DocumentVerb<Command, Document> {
  /** Permits the verb in a mount namespace other than kubelet's. */
  isForAnyNamespace?: boolean
  /** @throws {Refusal} with a sentence for the operator; any other error is the system's */
  run(session: Session, command: Command, caller: OperatorProcess): Promise<Document>
}

/** The process that an operator started. Verbs that print progress or warnings in addition to their document use it. */
export interface OperatorProcess {
  /** modekeep's version. */
  version: string
  /** True if stdout is a terminal. */
  isTerminal: boolean
  /** Writes all bytes to stdout. @throws if stdout cannot be written or its reader has closed it */
  write(bytes: Uint8Array): Promise<void>
  /** Aborted by Ctrl-C and SIGTERM, before they end the process. */
  interrupted: AbortSignal
}
