import * as z from 'zod/mini'
import type { MountRequest } from '../request/request.ts'

/** Equal for requests that ask for the same mount. The order of mount options does not matter; the pod's name does not. */
export function requestKey(request: MountRequest): string {
  const { source, fsType, readOnly, fsGroup, ownership, groupAccess, changePolicy, restoreOnUnmount } = request
  const mountOptions = [...request.mountOptions].sort()
  return JSON.stringify({
    source,
    fsType,
    mountOptions,
    readOnly,
    fsGroup,
    ownership,
    groupAccess,
    changePolicy,
    restoreOnUnmount,
    // Left out where there is none, as by versions that had neither: an upgrade replaces no mount.
    subPath: request.subPath || undefined,
    idmapFrom: request.idmapFrom,
  })
}

const schema = z.object({
  source: z.string(),
  subPath: z._default(z.string(), ''),
  fsType: z.string(),
  mountOptions: z.array(z.string()),
  readOnly: z.boolean(),
  fsGroup: z.optional(z.number()),
  ownership: z.enum(['none', 'walk', 'idmap', 'auto']),
  idmapFrom: z.optional(z.number()),
  groupAccess: z.enum(['keep', 'grant']),
  changePolicy: z.enum(['OnRootMismatch', 'Always']),
  restoreOnUnmount: z.boolean(),
})

/** What a key was made of; undefined if it is none. */
export function requestFrom(key: string): Omit<MountRequest, 'directory' | 'pod'> | undefined {
  try {
    const { success, data } = schema.safeParse(JSON.parse(key))
    return success ? { ...data, fsGroup: data.fsGroup, idmapFrom: data.idmapFrom } : undefined
  } catch {
    return undefined
  }
}
