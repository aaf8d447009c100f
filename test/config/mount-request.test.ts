import { describe, expect, it } from 'vitest'
import { isSameMountRequest, type MountRequest, toRecordedRequest } from '../../src/config/mount-request.ts'
import { BIND_REQUEST, FS_GROUP, NO_FS_GROUP } from '../helpers/mount-records.ts'

const REQUEST: MountRequest = {
  ...BIND_REQUEST,
  mountOptions: ['noexec', 'noatime'],
  ownership: 'walk',
  restoreOnUnmount: true,
}

const RECORDED = toRecordedRequest(REQUEST)

describe('isSameMountRequest', () => {
  it.each<[string, Partial<MountRequest>]>([
    ['the order of mount options', { mountOptions: ['noatime', 'noexec'] }],
    ['the pod', { pod: 'n/q' }],
    ['the spelling of the directory', { directory: '/other' }],
  ])('isSameMountRequest does not depend on %s', (_what, over) => {
    expect(isSameMountRequest(RECORDED, { ...REQUEST, ...over })).toBe(true)
  })

  it.each<[Partial<MountRequest>]>([
    [{ source: { type: 'local', path: '/srv/b' } }],
    [{ source: { type: 'image', path: '/srv/a' } }],
    [{ source: { type: 'none' } }],
    [{ fsType: 'tmpfs' }],
    [{ mountOptions: ['noexec'] }],
    [{ mountOptions: ['noexec,noatime'] }],
    [{ readOnly: true }],
    [{ fsGroup: { ...FS_GROUP, groupId: 2001 } }],
    [{ fsGroup: NO_FS_GROUP }],
    [{ ownership: 'none' }],
    [{ fsGroup: { ...FS_GROUP, access: 'grant' } }],
    [{ fsGroup: { ...FS_GROUP, changePolicy: 'Always' } }],
    [{ restoreOnUnmount: false }],
    [{ submounts: 'hide' }],
  ])('isSameMountRequest depends on %j', (over) => {
    expect(isSameMountRequest(RECORDED, { ...REQUEST, ...over })).toBe(false)
  })

  it('isSameMountRequest does not change the order of mount options in the request', () => {
    isSameMountRequest(RECORDED, REQUEST)
    expect(RECORDED.mountOptions).toEqual(['noexec', 'noatime'])
    expect(REQUEST.mountOptions).toEqual(['noexec', 'noatime'])
  })
})
