import type { Session } from '../../store/session.ts'
import type { Caller } from '../actions/caller.ts'
import type { Line } from '../text/output.ts'
import type { OptionName } from './options.ts'

/** What follows a verb. */
export interface VerbArguments {
  /** Options by name; undefined for one without a value. */
  given: ReadonlyMap<string, string | undefined>
  words: readonly string[]
  /** What is found wrong is added to it. */
  faults: string[]
  /** What a relative path starts from; called only for one. */
  workingDirectory: () => string
}

/** All there is to say of a verb: parsing, help, completion and the man page are made from it. */
export interface VerbForm<Command = unknown> {
  /** What follows the verb, options aside: placeholders, and words to choose from. Without it no words are read. */
  operands?: string
  /** Options in `usage` that must be given. */
  needs?: string
  /** One line for the overview. */
  summary: string
  /** Paragraphs. */
  text: readonly string[]
  /** What each option does, in the order of the help, without --help; and without --json where that is one document. */
  options: Readonly<Partial<Record<OptionName, string>>>
  examples: readonly string[]
  /** What exit status 1 means beside "failed or refused". */
  failure?: string
  read(args: VerbArguments): Command
}

/** How a document is looked at. */
export interface DisplayOptions<Command> {
  /** What was asked for. */
  command?: Command
  /** Of the terminal, in columns; undefined: as wide as its content. */
  width?: number | undefined
}

/** A verb that looks at, or changes, the node, and tells what it found in a document. */
export interface DocumentVerb<Command, Document> extends VerbForm<Command> {
  /** It changes nothing in any case, and leaves no line in the log. */
  isLooking?: boolean
  /** The document for people. */
  lines(document: Document, look?: DisplayOptions<Command>): Line[]
  /** What is said where that makes it a failure although it was carried out. */
  trouble?: string
  hasTrouble?(document: Document): boolean
  /** What it has for others is on stdout: the document goes to stderr. */
  writesStdout?(command: Command): boolean
  /** What to know where it is interrupted; undefined where nothing is begun. */
  interrupted?(command: Command): string | undefined
}

export interface SessionVerb<Command, Document> extends DocumentVerb<Command, Document> {
  /** Without it, it is refused in a mount namespace other than kubelet's. */
  isForAnyNamespace?: boolean
  /** @throws {Refusal} with a sentence for the operator; any other error is the system's */
  run(session: Session, command: Command, caller: Caller): Promise<Document>
}
