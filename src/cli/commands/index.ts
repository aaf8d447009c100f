import { Refusal } from '../../errors/refusal.ts'
import { refuseOtherNamespace } from '../../repair/state.ts'
import type { Session } from '../../state/session.ts'
import { completionVerb, explainVerb, helpVerb, versionVerb } from './about.ts'
import { applyVerb } from './apply.ts'
import { doctorVerb } from './doctor.ts'
import { gcVerb } from './gc.ts'
import { healVerb } from './heal.ts'
import { installVerb, uninstallVerb } from './install.ts'
import { journalVerb } from './journal.ts'
import { logsVerb } from './logs.ts'
import { migrateVerb } from './migrate.ts'
import { planVerb } from './plan.ts'
import { restoreVerb } from './restore.ts'
import { csiVerb, devicePluginVerb, nriVerb } from './servers.ts'
import { statusVerb } from './status.ts'
import type { Caller, DocumentVerb, SessionVerb, VerbForm } from './verb.ts'

/** All verbs, in the order of the help. */
const VERBS = {
  plan: planVerb,
  apply: applyVerb,
  restore: restoreVerb,
  journal: journalVerb,
  status: statusVerb,
  heal: healVerb,
  doctor: doctorVerb,
  logs: logsVerb,
  explain: explainVerb,
  gc: gcVerb,
  migrate: migrateVerb,
  install: installVerb,
  uninstall: uninstallVerb,
  csi: csiVerb,
  nri: nriVerb,
  'device-plugin': devicePluginVerb,
  completion: completionVerb,
  version: versionVerb,
  help: helpVerb,
}

export type Verb = keyof typeof VERBS

/** The names of verbs whose description extends `Form`. */
type VerbsLike<Form> = { [V in Verb]: (typeof VERBS)[V] extends Form ? V : never }[Verb]
type DocumentVerbName = VerbsLike<{ lines: unknown }>

export type CommandOf<V extends Verb> = ReturnType<(typeof VERBS)[V]['read']>
export type OperatorCommand = CommandOf<Verb>

/** A command that inspects or changes the node. */
export type NodeCommand = CommandOf<DocumentVerbName>

/** A command that needs only a session. Doctor needs more. */
type SessionCommand = CommandOf<VerbsLike<{ run: unknown }>>

/** The result of a verb. `--json` prints it with an apiVersion and the verb's kind. */
export type Document = Parameters<(typeof VERBS)[DocumentVerbName]['lines']>[0]

export const VERB_NAMES = Object.keys(VERBS) as Verb[]

/** The calls of kubelet, for the overview and the man page. */
export const KUBELET_VERBS = ['init', 'mount DIR JSON', 'unmount DIR']

export function isVerb(verb: string): verb is Verb {
  return Object.hasOwn(VERBS, verb)
}

/** Returns a verb's description, including the options that every verb has. */
export function getVerbForm(verb: Verb): VerbForm<OperatorCommand> {
  const form: VerbForm<OperatorCommand> = VERBS[verb]
  const { json = 'one JSON document on stdout', ...own } = form.options
  return { ...form, options: { ...own, json, help: 'this text' } }
}

/** Returns the verb of a command. Its types are widened, because each command and document names its own verb. */
export function getDocumentVerb({ verb }: { verb: DocumentVerbName }): DocumentVerb<NodeCommand, Document> {
  return VERBS[verb]
}

/** A caller without a stdout, for verbs that only return a document. */
const NO_CALLER: Caller = {
  version: '',
  isTerminal: false,
  write: () => Promise.reject(Refusal.of('usage', 'there is no stdout', 'name a file')),
  interrupted: new AbortController().signal,
}

/**
 * Runs an operator's command.
 * @throws {Refusal} with a sentence for the operator; any other error is the system's
 */
export async function runVerb(session: Session, command: SessionCommand, caller = NO_CALLER): Promise<Document> {
  const work: SessionVerb<SessionCommand, Document> = VERBS[command.verb]
  if (!work.isForAnyNamespace) refuseOtherNamespace(session)
  return work.run(session, command, caller)
}
