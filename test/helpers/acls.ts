import type { AclStore } from '../../src/ownership/journal/codec.ts'

/** A table of ACLs in memory. */
export function memoryAcls(): AclStore {
  const all: Uint8Array[] = []
  return {
    assignNumber(acl) {
      const at = all.findIndex((one) => Buffer.compare(one, acl) === 0)
      return at < 0 ? all.push(acl) : at + 1
    },
    get(number) {
      const acl = all[number - 1]
      if (acl === undefined) throw new RangeError('an ACL is missing')
      return acl
    },
  }
}
