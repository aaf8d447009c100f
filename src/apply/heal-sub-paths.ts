import type { Session } from './session.ts'

export interface SubPathFinding {
  mountPoint: string
  source: string
  action: 'healed' | 'would heal' | 'left'
  reason: string
}

export function healSubPaths(
  _session: Session,
  _kubeletDirectory: string,
  _how: { dryRun: boolean },
): SubPathFinding[] {
  return []
}
