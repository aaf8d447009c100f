import { refuseOtherNamespace } from '../../heal/namespace.ts'
import type { Session } from '../../store/session.ts'
import type { Work } from './form.ts'
import { type Document, type Task, VERBS } from './index.ts'

/**
 * Does what an operator's command says.
 * @throws {Refusal} with a sentence for the operator; any other error is the system's
 */
export async function run(session: Session, command: Task): Promise<Document> {
  const work: Work<Task, Document> = VERBS[command.verb]
  if (!work.isForAnyNamespace) refuseOtherNamespace(session)
  return work.run(session, command)
}
