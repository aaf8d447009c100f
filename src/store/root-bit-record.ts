import * as z from 'zod/mini'
import { PRIVATE } from '../request/defaults.ts'
import { RecordKind } from './record.ts'
import type { Store } from './record-directories.ts'
import { isVolumeId } from './volume-id.ts'

const schema = () =>
  z.object({
    volume: z.string(),
    /** Path of the volume's root on the node, or the source as the request names it. */
    source: z.string(),
    /** Namespace and name of the pod that it was set for; undefined in records of earlier versions. */
    pod: z.optional(z.string()),
  })

/** A volume whose root had no set-gid bit before modekeep set it for a mapped mount. */
export type RootBitRecord = z.infer<ReturnType<typeof schema>>

const locateRootBits = ({ config }: Pick<Store, 'config'>) => `${config.stateDir}/${PRIVATE.rootBits}`

/** Durable before the bit is set, and removed after the bit is removed. Both happen under the volume's lock. */
export const rootBits = new RecordKind<RootBitRecord>({
  format: 1,
  schema,
  ownerOf: ({ volume }) => volume,
  directoryOf: locateRootBits,
  name: { of: (volume) => `${volume}.json` },
})

/** Lists the volumes that have such a record. */
export function listRootBits(store: Store): string[] {
  const names = store.host.files.list(locateRootBits(store)).filter((name) => name.endsWith('.json'))
  return names.map((name) => name.replace(/\.json$/, '')).filter(isVolumeId)
}
