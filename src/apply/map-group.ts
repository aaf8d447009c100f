import type { Handle, Stat } from '../host/host.ts'
import { Refusal } from '../protocol/refusal.ts'
import type { Session } from './session.ts'

export class Unmappable extends Refusal {
  readonly reason = 'not yet'
}

export function mapGroup(_session: Session, _tree: Handle, _source: Stat, _from: number, _to: number): void {
  throw new Unmappable('not yet')
}
