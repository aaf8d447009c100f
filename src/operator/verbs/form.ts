import type { Session } from '../../store/session.ts'
import type { Line } from '../text/line.ts'
import type { OptionName } from './options.ts'

/** Options by name; undefined for one without a value. */
export type Given = ReadonlyMap<string, string | undefined>

/** What follows a verb. */
export interface Arguments {
  given: Given
  words: readonly string[]
  /** What is found wrong is added to it. */
  faults: string[]
  /** What a relative path starts from; called only for one. */
  workingDirectory: () => string
  /** All that there are. */
  verbs: readonly string[]
}

/** All there is to say of a verb: parsing, help, completion and the man page are made from it. */
export interface VerbForm<Command = unknown> {
  /** What follows the verb, options aside; with '' no other words are read. */
  operands: string
  /** Options in `usage` that must be given. */
  needs?: string
  /** One line for the overview. */
  summary: string
  /** Paragraphs. */
  text: readonly string[]
  /** What each option does, in the order of the help, without --help. */
  options: Readonly<Partial<Record<OptionName, string>>>
  /** What completion offers for the operand. */
  completes?: 'directories' | 'verbs' | readonly string[]
  examples: readonly string[]
  /** What exit status 1 means beside "failed or refused". */
  failure?: string
  read(args: Arguments): Command
}

/** A verb that looks at, or changes, the node, and tells what it found in a document. */
export interface Shown<Command, Document> extends VerbForm<Command> {
  /** It changes nothing in any case, and leaves no line in the log. */
  isLooking?: boolean
  /** The document for people. */
  lines(document: Document): Line[]
  /** What makes it a failure although it was carried out. */
  trouble?(document: Document): string | undefined
  /** What to know where it is interrupted; undefined where nothing is begun. */
  interrupted?(command: Command): string | undefined
}

export interface Work<Command, Document> extends Shown<Command, Document> {
  /** Without it, it is refused in a mount namespace other than kubelet's. */
  isForAnyNamespace?: boolean
  /** @throws {Refusal} with a sentence for the operator; any other error is the system's */
  run(session: Session, command: Command): Promise<Document>
}

export const JSON_TEXT = 'one JSON document on stdout'
