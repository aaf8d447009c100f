import type { WalkReport } from '../../ownership/report.ts'
import type { Session } from '../../store/session.ts'

/** What the log is told of a walk is what the operator is told. */
export function listening(session: Session): { session: Session; report(): WalkReport | undefined } {
  const noted: { inodes?: WalkReport } = {}
  const heard: Session = {
    ...session,
    note(facts) {
      Object.assign(noted, facts)
      session.note(facts)
    },
  }
  return { session: heard, report: () => noted.inodes }
}
