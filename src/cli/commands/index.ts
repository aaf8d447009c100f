import { Refusal } from '../../errors/refusal.ts'
import { refuseOtherMountNamespace } from '../../repair/state.ts'
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
import { supportBundleVerb } from './support-bundle.ts'
import type { DocumentVerb, OperatorProcess, SessionVerb, VerbForm } from './verb.ts'

/** All verbs, in the order of the help. */
const OPERATOR_VERBS = {
  plan: planVerb,
  apply: applyVerb,
  restore: restoreVerb,
  journal: journalVerb,
  status: statusVerb,
  heal: healVerb,
  doctor: doctorVerb,
  logs: logsVerb,
  'support-bundle': supportBundleVerb,
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

export type OperatorVerb = keyof typeof OPERATOR_VERBS

/** The names of verbs whose description extends `Form`. */
type VerbWithForm<Form> = { [V in OperatorVerb]: (typeof OPERATOR_VERBS)[V] extends Form ? V : never }[OperatorVerb]
type DocumentVerbName = VerbWithForm<{ lines: unknown }>

export type CommandOfVerb<V extends OperatorVerb> = ReturnType<(typeof OPERATOR_VERBS)[V]['read']>
export type OperatorCommand = CommandOfVerb<OperatorVerb>

/** A command that inspects or changes the node. */
export type NodeCommand = CommandOfVerb<DocumentVerbName>

/** A command that needs only a session. Doctor and support-bundle need more. */
type SessionCommand = CommandOfVerb<VerbWithForm<{ run: unknown }>>

/** The result of a verb. `--json` prints it with an apiVersion and the verb's kind. */
export type CommandDocument = Parameters<(typeof OPERATOR_VERBS)[DocumentVerbName]['lines']>[0]

export const OPERATOR_VERB_NAMES = Object.keys(OPERATOR_VERBS) as OperatorVerb[]

/** The calls of kubelet, for the overview and the man page. */
export const KUBELET_VERBS = ['init', 'mount DIR JSON', 'unmount DIR']

export function isOperatorVerb(verb: string): verb is OperatorVerb {
  return Object.hasOwn(OPERATOR_VERBS, verb)
}

/** Returns a verb's description, including the options that every verb has. */
export function getVerbForm(verb: OperatorVerb): VerbForm<OperatorCommand> {
  const form: VerbForm<OperatorCommand> = OPERATOR_VERBS[verb]
  const { json = 'one JSON document on stdout', ...own } = form.options
  return { ...form, options: { ...own, json, help: 'this text' } }
}

/** Returns the verb of a command. Its types are widened, because each command and document names its own verb. */
export function getVerbOfCommand({ verb }: { verb: DocumentVerbName }): DocumentVerb<NodeCommand, CommandDocument> {
  return OPERATOR_VERBS[verb]
}

/** A caller without a stdout, for verbs that only return a document. */
const CALLER_WITHOUT_STDOUT: OperatorProcess = {
  version: '',
  isTerminal: false,
  write: () => Promise.reject(Refusal.of('usage', 'there is no stdout', 'name a file')),
  interrupted: new AbortController().signal,
}

/**
 * Runs an operator's command.
 * @throws {Refusal} with a sentence for the operator; any other error is the system's
 */
export async function runVerb(
  session: Session,
  command: SessionCommand,
  caller = CALLER_WITHOUT_STDOUT,
): Promise<CommandDocument> {
  const work: SessionVerb<SessionCommand, CommandDocument> = OPERATOR_VERBS[command.verb]
  if (!work.isForAnyNamespace) refuseOtherMountNamespace(session)
  return work.run(session, command, caller)
}
