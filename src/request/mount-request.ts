import * as z from 'zod/mini'
import type { Lifecycle } from './rule.ts'
import type { SecretKeys } from './secret-keys.ts'
import { sourceSchema } from './source.ts'
import type { SystemGroupRule } from './system-group-rule.ts'

export const SUBMOUNT_POLICIES = ['refuse', 'hide', 'include'] as const

/** What a pod asks for, as a record keeps it: all that tells a repeated call from a changed one. It has no secret. */
export const askedSchema = () =>
  z.object({
    source: sourceSchema(),
    /** The part of the source that is mounted; undefined: all of it. */
    subPath: z.optional(z.string()),
    fsType: z.string(),
    mountOptions: z.readonly(z.array(z.string())),
    readOnly: z.boolean(),
    fsGroup: z.optional(z.number()),
    ownership: z.enum(['none', 'walk', 'idmap', 'auto']),
    /** The group on disk that an idmapped mount shows as fsGroup; undefined: the root's. */
    idmapFrom: z.optional(z.number()),
    groupAccess: z.enum(['keep', 'grant']),
    changePolicy: z.enum(['OnRootMismatch', 'Always']),
    restoreOnUnmount: z.boolean(),
    /** The root of a mapped volume gets the set-gid bit. Records of earlier versions have none. */
    rootSetGid: z.optional(z.boolean()),
    /** What becomes of mounts inside of the source; undefined: a new mount that may be written to is refused. */
    submounts: z.optional(z.enum(SUBMOUNT_POLICIES)),
  })

type AskedMount = z.infer<ReturnType<typeof askedSchema>>

/** How a volume is published through CSI. */
export interface Publication {
  volumeId: string
  /** Access mode SINGLE_NODE_SINGLE_WRITER: no second target may show the volume. */
  isSingleWriter: boolean
}

/** The same for a mount directory: checked and complete. Groups are numeric, paths absolute. */
export interface MountRequest extends AskedMount, SystemGroupRule {
  directory: string
  /** Namespace and name; undefined where kubelet told none. */
  pod?: string | undefined
  /** The pod's; undefined where kubelet told none. */
  namespace?: string | undefined
  /** Undefined for a FlexVolume, of which kubelet does not tell. */
  lifecycle?: Lifecycle | undefined
  /** What a CSI call says of the volume; undefined for a FlexVolume. */
  publication?: Publication | undefined
  /** What the rule that allowed it says of set-gid on directories. */
  setGid?: boolean | undefined
  /** What that rule says of the keys of its Secret. */
  secretKeys?: SecretKeys | undefined
}

/** Whether both ask for the same mount. The order of mount options does not matter. */
export function isSameMount(one: AskedMount, other: AskedMount): boolean {
  return comparable(one) === comparable(other)
}

/** Each key once; one that is missing is no type. */
const KEYS = Object.keys({
  source: true,
  subPath: true,
  fsType: true,
  mountOptions: true,
  readOnly: true,
  fsGroup: true,
  ownership: true,
  idmapFrom: true,
  groupAccess: true,
  changePolicy: true,
  restoreOnUnmount: true,
  rootSetGid: true,
  submounts: true,
} satisfies Record<keyof AskedMount, true>) as (keyof AskedMount)[]

function comparable(asked: AskedMount): string {
  return JSON.stringify(KEYS.map((key) => (key === 'mountOptions' ? [...asked[key]].sort() : asked[key])))
}

/** What a record keeps of a request. */
export function askedOf(request: AskedMount): AskedMount {
  return Object.fromEntries(KEYS.map((key) => [key, request[key]])) as AskedMount
}
