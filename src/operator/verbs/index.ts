import { refuseOtherNamespace } from '../../heal/namespace.ts'
import { Refusal } from '../../refusal/refusal.ts'
import type { Session } from '../../store/session.ts'
import type { Caller } from '../actions/caller.ts'
import { completion, help, version } from './about.ts'
import { apply, plan } from './apply.ts'
import { csi } from './csi.ts'
import { devicePlugin } from './device-plugin.ts'
import { doctor } from './doctor.ts'
import type { DocumentVerb, SessionVerb, VerbForm } from './form.ts'
import { gc } from './gc.ts'
import { heal } from './heal.ts'
import { install, uninstall } from './install.ts'
import { journal } from './journal.ts'
import { logs } from './logs.ts'
import { migrate } from './migrate.ts'
import { nri } from './nri.ts'
import { restore } from './restore.ts'
import { status } from './status.ts'

/** In the order of the help. */
const VERBS = {
  plan,
  apply,
  restore,
  journal,
  status,
  heal,
  doctor,
  logs,
  gc,
  migrate,
  install,
  uninstall,
  csi,
  nri,
  'device-plugin': devicePlugin,
  completion,
  version,
  help,
}

export type Verb = keyof typeof VERBS

/** The verbs of a form. */
type VerbsLike<Form> = { [V in Verb]: (typeof VERBS)[V] extends Form ? V : never }[Verb]
type DocumentVerbName = VerbsLike<{ lines: unknown }>

export type CommandOf<V extends Verb> = ReturnType<(typeof VERBS)[V]['read']>
export type Command = CommandOf<Verb>

/** A command that looks at, or changes, the node. */
export type NodeCommand = CommandOf<DocumentVerbName>

/** What needs no more than a session; doctor does. */
type SessionCommand = CommandOf<VerbsLike<{ run: unknown }>>

/** What a verb found or did. `--json` prints it with an apiVersion and a kind for its verb. */
export type Document = Parameters<(typeof VERBS)[DocumentVerbName]['lines']>[0]

export const VERB_NAMES = Object.keys(VERBS) as Verb[]

/** What kubelet calls, for the overview and the man page. */
export const KUBELET_VERBS = ['init', 'mount DIR JSON', 'unmount DIR']

export function isVerb(verb: string): verb is Verb {
  return Object.hasOwn(VERBS, verb)
}

/** With the options that every verb has. */
export function getVerbForm(verb: Verb): VerbForm<Command> {
  const form: VerbForm<Command> = VERBS[verb]
  const { json = 'one JSON document on stdout', ...own } = form.options
  return { ...form, options: { ...own, json, help: 'this text' } }
}

/** How a verb is shown: each of its commands and documents names it. */
export function getDocumentVerb({ verb }: { verb: DocumentVerbName }): DocumentVerb<NodeCommand, Document> {
  return VERBS[verb]
}

/** Nobody is there to read more than the document. */
const NO_CALLER: Caller = {
  version: '',
  isTerminal: false,
  write: () => Promise.reject(new Refusal('there is no stdout: name a file')),
  interrupted: new AbortController().signal,
}

/**
 * Does what an operator's command says.
 * @throws {Refusal} with a sentence for the operator; any other error is the system's
 */
export async function runVerb(session: Session, command: SessionCommand, caller = NO_CALLER): Promise<Document> {
  const work: SessionVerb<SessionCommand, Document> = VERBS[command.verb]
  if (!work.isForAnyNamespace) refuseOtherNamespace(session)
  return work.run(session, command, caller)
}
