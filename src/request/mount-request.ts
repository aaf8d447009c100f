import * as z from 'zod/mini'
import type { Lifecycle } from './rule.ts'
import type { SecretKeys } from './secret-keys.ts'
import { sourceSchema } from './source.ts'
import type { SystemGroupRule } from './system-group-rule.ts'

export const SUBMOUNT_POLICIES = ['refuse', 'hide', 'include'] as const

/**
 * The recorded part of a mount request: all that distinguishes a repeated call from a changed one. It has no secret.
 */
export const createRequestedMountSchema = () =>
  z.object({
    source: sourceSchema(),
    /** Part of the source that is mounted; undefined: all of it. */
    subPath: z.optional(z.string()),
    fsType: z.string(),
    mountOptions: z.readonly(z.array(z.string())),
    readOnly: z.boolean(),
    fsGroup: z.optional(z.number()),
    ownership: z.enum(['none', 'walk', 'idmap', 'auto']),
    /** Group on disk that an idmapped mount shows as fsGroup; undefined: the root's. */
    idmapFrom: z.optional(z.number()),
    groupAccess: z.enum(['keep', 'grant']),
    changePolicy: z.enum(['OnRootMismatch', 'Always']),
    restoreOnUnmount: z.boolean(),
    /** The root of a mapped volume gets the set-gid bit. Records of earlier versions have no such field. */
    rootSetGid: z.optional(z.boolean()),
    /** Handling of mounts inside of the source; undefined: a new writable mount is refused. */
    submounts: z.optional(z.enum(SUBMOUNT_POLICIES)),
  })

type RequestedMount = z.infer<ReturnType<typeof createRequestedMountSchema>>

/** Parameters of a volume published through CSI. */
export interface CsiPublication {
  volumeId: string
  /** Access mode SINGLE_NODE_SINGLE_WRITER: no second target may show the volume. */
  isSingleWriter: boolean
}

/** A request for a mount directory, checked and complete. Groups are numeric, paths absolute. */
export interface MountRequest extends RequestedMount, SystemGroupRule {
  directory: string
  /** Namespace and name; undefined if kubelet reported none. */
  pod?: string | undefined
  /** Namespace of the pod; undefined if kubelet reported none. */
  namespace?: string | undefined
  /** Undefined for a FlexVolume: kubelet does not report it. */
  lifecycle?: Lifecycle | undefined
  /** Undefined for a FlexVolume. */
  publication?: CsiPublication | undefined
  /** `setGid` of the rule that allowed the request. */
  setGid?: boolean | undefined
  /** `secretKeys` of that rule. */
  secretKeys?: SecretKeys | undefined
}

/** Returns whether both requests are for the same mount. The order of mount options does not matter. */
export function isSameMount(one: RequestedMount, other: RequestedMount): boolean {
  return serializeMount(one) === serializeMount(other)
}

/** Every key once: the type check fails if one is missing. */
const REQUEST_KEYS = Object.keys({
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
} satisfies Record<keyof RequestedMount, true>) as (keyof RequestedMount)[]

function serializeMount(mount: RequestedMount): string {
  return JSON.stringify(REQUEST_KEYS.map((key) => (key === 'mountOptions' ? [...mount[key]].sort() : mount[key])))
}

/** Picks the recorded part of a request. */
export function pickRequestedMount(request: RequestedMount): RequestedMount {
  return Object.fromEntries(REQUEST_KEYS.map((key) => [key, request[key]])) as RequestedMount
}
