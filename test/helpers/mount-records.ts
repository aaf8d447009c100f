import { type FsGroupRequest, type MountRequest, toRecordedRequest } from '../../src/config/mount-request.ts'
import type { MountRecord } from '../../src/state/mount-record.ts'

/** A pod's fsGroup, with the defaults of its options. */
export const FS_GROUP: FsGroupRequest = { groupId: 2000, access: 'keep', changePolicy: 'OnRootMismatch' }
export const NO_FS_GROUP: MountRequest['fsGroup'] = { ...FS_GROUP, groupId: undefined }

/** A request for a bind mount. */
export const BIND_REQUEST: MountRequest = {
  directory: '/pods/p/volumes/modekeep~fs/v',
  source: { type: 'local', path: '/srv/a' },
  fsType: 'bind',
  mountOptions: [],
  readOnly: false,
  ownership: 'none',
  fsGroup: FS_GROUP,
  restoreOnUnmount: false,
  pod: 'n/p',
}

export const MOUNTED = { mountId: '77', device: 5, namespace: 'mnt:[1]', since: 1 }

const { directory, pod } = BIND_REQUEST

/** The record of that mount, finished. */
export const READY: MountRecord = {
  boot: 'boot-1',
  directory,
  pod,
  request: toRecordedRequest(BIND_REQUEST),
  source: '/srv/a',
  volume: 'fs1-2-3',
  given: { by: 'none' },
  mounted: MOUNTED,
  replacedDaemons: [],
  hadSecrets: false,
}
