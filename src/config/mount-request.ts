import * as z from 'zod/mini'
import type { CsiLifecycle, SecretKeys, SystemGroupRule } from './rule.ts'
import { createVolumeSourceSchema, type VolumeSource } from './source.ts'

export const SUBMOUNT_POLICIES = ['refuse', 'hide', 'include'] as const

/** The form in which records store a request: all that distinguishes a repeated call from a changed one. It has no secret. */
export const createRecordedRequestSchema = () =>
  z.object({
    source: createVolumeSourceSchema(),
    subPath: z.optional(z.string()),
    fsType: z.string(),
    mountOptions: z.readonly(z.array(z.string())),
    readOnly: z.boolean(),
    fsGroup: z.optional(z.number()),
    ownership: z.enum(['none', 'walk', 'idmap', 'auto']),
    idmapFrom: z.optional(z.number()),
    groupAccess: z.enum(['keep', 'grant']),
    changePolicy: z.enum(['OnRootMismatch', 'Always']),
    restoreOnUnmount: z.boolean(),
    rootSetGid: z.optional(z.boolean()),
    submounts: z.optional(z.enum(SUBMOUNT_POLICIES)),
  })

export type RecordedRequest = z.infer<ReturnType<typeof createRecordedRequestSchema>>

/** How a group is applied to a volume. A call creates it, and the walk gets it unchanged. */
export interface FsGroupRequest {
  groupId: number
  /** `keep` adds no permission bit; `grant` adds the bits that kubelet adds for fsGroup. */
  access: RecordedRequest['groupAccess']
  /** `OnRootMismatch`: a volume is walked only if its root or its record does not show a complete walk. */
  changePolicy: RecordedRequest['changePolicy']
  /** False: set-gid is not added to directories. The rule that allowed the request decides. */
  setGid?: boolean | undefined
  /**
   * Also applies the group to inodes that a user changed since an earlier walk, if they are certainly the recorded
   * inodes. Only an operator requests it.
   */
  isForced?: boolean | undefined
  /** Changes the root alone, of a volume without content. */
  isRootOnly?: boolean | undefined
}

/** The same for a pod that has no fsGroup. */
interface NoFsGroupRequest extends Omit<FsGroupRequest, 'groupId'> {
  groupId?: undefined
}

/** Parameters of a volume published through CSI. */
interface CsiPublication {
  volumeId: string
  /** Access mode SINGLE_NODE_SINGLE_WRITER: no second target may show the volume. */
  isSingleWriter: boolean
}

/** A request for a mount directory, checked and complete. Paths are absolute. */
export interface MountRequest extends SystemGroupRule {
  directory: string
  source: VolumeSource
  /** Part of the source that is mounted; undefined: all of it. */
  subPath?: string | undefined
  fsType: string
  mountOptions: readonly string[]
  readOnly: boolean
  ownership: RecordedRequest['ownership']
  fsGroup: FsGroupRequest | NoFsGroupRequest
  /** Group on disk that an idmapped mount shows as fsGroup; undefined: the root's. */
  idmapFrom?: number | undefined
  restoreOnUnmount: boolean
  /** The root of a mapped volume gets the set-gid bit. */
  rootSetGid?: boolean | undefined
  /** Handling of mounts inside of the source; undefined: a new writable mount is refused. */
  submounts?: RecordedRequest['submounts']
  /** Namespace and name; undefined if kubelet reported none. */
  pod?: string | undefined
  namespace?: string | undefined
  /** Undefined for a FlexVolume: kubelet does not report it. */
  lifecycle?: CsiLifecycle | undefined
  /** Undefined for a FlexVolume. */
  publication?: CsiPublication | undefined
  secretKeys?: SecretKeys | undefined
}

/** Every field, so that the type check fails if one is missing. */
type RequireEveryField<T> = { [K in keyof Required<T>]: T[K] }

export function toRecordedRequest(request: MountRequest): RequireEveryField<RecordedRequest> {
  const { source, subPath, fsType, mountOptions, readOnly, ownership, idmapFrom } = request
  const { restoreOnUnmount, rootSetGid, submounts, fsGroup } = request
  return {
    ...{ source, subPath, fsType, mountOptions, readOnly, fsGroup: fsGroup.groupId, ownership, idmapFrom },
    ...{ groupAccess: fsGroup.access, changePolicy: fsGroup.changePolicy, restoreOnUnmount, rootSetGid, submounts },
  }
}

/** Returns the fields of a request that a record has in that form. The record has the rule's `setGid`, too. */
export function fromRecordedRequest(
  { fsGroup: groupId, groupAccess: access, changePolicy, ...request }: RecordedRequest,
  setGid: boolean | undefined,
): Pick<MountRequest, keyof typeof request | 'fsGroup'> {
  const how: RequireEveryField<Omit<FsGroupRequest, 'groupId' | 'isForced' | 'isRootOnly'>> = {
    access,
    changePolicy,
    setGid,
  }
  return { ...request, fsGroup: { groupId, ...how } }
}

/** Returns whether both requests are for the same mount. The order of mount options does not matter. */
export function isSameMountRequest(recorded: RecordedRequest, request: MountRequest): boolean {
  const current = toRecordedRequest(request)
  const serialize = (value: unknown) => JSON.stringify(Array.isArray(value) ? value.toSorted() : value)
  return Object.keys(current).every((key) => {
    const field = key as keyof RecordedRequest
    return serialize(recorded[field]) === serialize(current[field])
  })
}
