import { describe, expect, it } from 'vitest'
import { isSameMount, type MountRequest } from '../../src/request/mount-request.ts'
import { BIND_REQUEST } from '../helpers/mount-records.ts'

const REQUEST: MountRequest = {
  ...BIND_REQUEST,
  mountOptions: ['noexec', 'noatime'],
  ownership: 'walk',
  restoreOnUnmount: true,
}

describe('isSameMount', () => {
  it.each<[string, Partial<MountRequest>]>([
    ['the order of mount options', { mountOptions: ['noatime', 'noexec'] }],
    ['the pod', { pod: 'n/q' }],
    ['the spelling of the directory', { directory: '/other' }],
  ])('isSameMount does not depend on %s', (_what, over) => {
    expect(isSameMount(REQUEST, { ...REQUEST, ...over })).toBe(true)
  })

  it.each<[Partial<MountRequest>]>([
    [{ source: { type: 'local', path: '/srv/b' } }],
    [{ source: { type: 'image', path: '/srv/a' } }],
    [{ source: { type: 'none' } }],
    [{ fsType: 'tmpfs' }],
    [{ mountOptions: ['noexec'] }],
    [{ mountOptions: ['noexec,noatime'] }],
    [{ readOnly: true }],
    [{ fsGroup: 2001 }],
    [{ fsGroup: undefined }],
    [{ ownership: 'none' }],
    [{ changePolicy: 'Always' }],
    [{ restoreOnUnmount: false }],
    [{ submounts: 'hide' }],
  ])('isSameMount depends on %j', (over) => {
    expect(isSameMount(REQUEST, { ...REQUEST, ...over })).toBe(false)
  })

  it('isSameMount does not change the order of mount options in the request', () => {
    isSameMount(REQUEST, REQUEST)
    expect(REQUEST.mountOptions).toEqual(['noexec', 'noatime'])
  })
})
