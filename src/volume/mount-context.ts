import { isPodsVolume } from '../mount-table/kubelet-volume.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { hasMountRecord } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import type { MountContext, OpenedSource } from './kind/kind.ts'
import { newStagingName } from './kind/staged.ts'

/** What a kind makes a mount of, with a staging directory of its own. @param group given by the kind's own mount options */
export function mountContextOf(
  session: Session,
  request: MountRequest,
  source: OpenedSource | undefined,
  group: number | undefined,
): MountContext {
  const { host, config, warn } = session
  return {
    host,
    request,
    source,
    group,
    // Decoded where a kind asks for them, and nowhere else.
    get secrets() {
      return session.secrets ?? new Map()
    },
    stateDir: config.stateDir,
    staging: newStagingName(),
    timeoutSeconds: config.helperTimeoutSeconds,
    isVolume: (path) => isPodsVolume(path) || hasMountRecord(host, config.stateDir, path),
    warn,
  }
}
