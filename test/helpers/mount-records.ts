import type { MountRequest } from '../../src/request/mount-request.ts'
import type { MountRecord } from '../../src/store/mount-record.ts'

/** A request for a bind mount. */
export const BIND_REQUEST: MountRequest = {
  directory: '/pods/p/volumes/modekeep~fs/v',
  source: { type: 'local', path: '/srv/a' },
  fsType: 'bind',
  mountOptions: [],
  readOnly: false,
  fsGroup: 2000,
  ownership: 'none',
  groupAccess: 'keep',
  changePolicy: 'OnRootMismatch',
  restoreOnUnmount: false,
  pod: 'n/p',
}

export const MOUNTED = { mountId: '77', device: 5, namespace: 'mnt:[1]', since: 1 }

const { directory, pod, ...request } = BIND_REQUEST

/** The record of that mount, finished. */
export const READY: MountRecord = {
  boot: 'boot-1',
  directory,
  pod,
  request,
  source: '/srv/a',
  volume: 'fs1-2-3',
  given: { by: 'none' },
  mounted: MOUNTED,
  replacedDaemons: [],
  hadSecrets: false,
}
