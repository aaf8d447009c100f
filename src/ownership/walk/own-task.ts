import { FILE_TYPE, isDirectory, type Stat } from '../../host/host.ts'
import { grantAcl } from '../inode/attributes.ts'
import {
  isRight,
  type Ownership,
  type OwnOrder,
  ownershipOf,
  same,
  wantedOwnership,
  whyUntouchable,
} from '../inode/policy.ts'
import {
  type Found,
  firstRecord,
  type InodeRecord,
  keyOf,
  type Meant,
  meantState,
  nextRecord,
  sameBytes,
} from '../inode/record.ts'
import type { Decision, Task } from './task.ts'

/** What every thread of a walk must know; it can be sent. */
export interface OwnSpec {
  order: OwnOrder
  /** The journal was empty: there is nothing to find in it but what this walk records. */
  firstTime: boolean
  /** ctime (milliseconds) from which on an inode may have been changed by this walk. */
  started: number
  /** Keys of inodes that an interrupted call may have left half changed. */
  unfinished: ReadonlySet<string>
}

/** Gives inodes to a group. */
export class OwnTask implements Task {
  readonly forgets = false
  readonly #spec: OwnSpec

  constructor(spec: OwnSpec) {
    this.#spec = spec
  }

  glance(stat: Stat): ReturnType<Task['glance']> {
    const leave = whyUntouchable(stat)
    if (leave) return { leave }
    if (!isRight(stat, this.#spec.order)) return 'look'
    return this.#spec.unfinished.size > 0 && this.#spec.unfinished.has(keyOf(stat)) ? 'look' : 'right'
  }

  asksFor(stat: Stat): boolean {
    return !this.#spec.firstTime || stat.changed >= this.#spec.started
  }

  decide(found: Found, path: Uint8Array, record: InodeRecord | undefined): Decision {
    if (record === undefined) return { change: this.#first(found, path) }
    const meant = this.#isUsers(record, found) ? undefined : meantState(record, found)
    if (meant) return { change: this.#changed(record, found, meant), forfeits: meant.forfeit ?? false }
    return { leave: 'changed since by its user', ...(record.settled ? {} : { settle: record }) }
  }

  #first(found: Found, path: Uint8Array): InodeRecord {
    const seen = ownershipOf(found.stat)
    const after = this.#wanted(found, seen)
    return firstRecord(found, path, seen, after, this.#acl(found))
  }

  #changed(record: InodeRecord, found: Found, meant: Meant): InodeRecord {
    return nextRecord(record, found, meant, this.#wanted(found, meant), this.#acl(found))
  }

  #wanted({ stat }: Found, from: Ownership): Ownership {
    return wantedOwnership({ mode: from.mode | (stat.mode & FILE_TYPE) }, this.#spec.order)
  }

  #acl({ stat, acl }: Found): Uint8Array | null {
    if (acl === null || this.#spec.order.access === 'keep') return acl
    return grantAcl(acl, isDirectory(stat) ? 0o7 : 0o6)
  }

  /** Confirmed to be as wanted once, yet different now: that is somebody's wish too, and is not undone. */
  #isUsers({ settled, after, seen, acl }: InodeRecord, found: Found): boolean {
    const asLeft = same(after, ownershipOf(found.stat)) && sameBytes(acl.after, found.acl)
    return settled && after.gid === this.#spec.order.group && !same(after, seen) && !asLeft
  }
}
