import type { Making, OpenedSource } from '../filesystem/kind.ts'
import { newStagingName } from '../filesystem/staged.ts'
import { isPodsVolume } from '../plan/mount.ts'
import type { MountRequest } from '../protocol/request.ts'
import { readMountRecord } from '../state/mount-record.ts'
import type { Session } from './session.ts'

/** What a kind makes a mount of, with a staging directory of its own. @param group given by the kind's own mount options */
export function makingOf(
  session: Session,
  request: MountRequest,
  source: OpenedSource | undefined,
  group: number | undefined,
): Making {
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
    isVolume: (path) => isPodsVolume(path) || readMountRecord(host, config.stateDir, path) !== undefined,
    warn,
  }
}
