import { describe, expect, it } from 'vitest'
import type { Handle, Inodes } from '../../../src/kernel/host.ts'
import { getErrno, SystemError } from '../../../src/kernel/system-error.ts'
import {
  DeletedInodeError,
  distinguishDeletedInodes,
  skipDeletedInode,
} from '../../../src/ownership/walk/deleted-inode.ts'
import { createWalkReport } from '../../../src/ownership/walk/report.ts'

const [ROOT, FILE] = [3, 4] as Handle[] as [Handle, Handle]
const fail = (code: string) => (): never => {
  throw new SystemError('fchownat', code, 'an open handle')
}
const caught = (call: () => unknown) => {
  try {
    return call()
  } catch (error) {
    return error
  }
}
const path = (text: string) => () => Buffer.from(text)

describe('an error of a server for one inode', () => {
  const chownOf = (code: string, queryEntry: () => unknown) =>
    distinguishDeletedInodes({ chown: fail(code), queryEntry } as unknown as Inodes, ROOT).chown

  it('is ENOENT for a stale handle while the root of the volume still exists', () => {
    const error = caught(() => chownOf('ESTALE', () => ({}))(FILE, 2000))
    expect([error, getErrno(error)]).toEqual([expect.any(DeletedInodeError), 'ENOENT'])
    expect(getErrno((error as Error).cause)).toBe('ESTALE')
  })

  it.each(['ESTALE', 'EIO', 'ETIMEDOUT'])('stays ESTALE if a query of the root fails by %s', (code) => {
    expect(getErrno(caught(() => chownOf('ESTALE', fail(code))(FILE, 2000)))).toBe('ESTALE')
  })

  it.each(['EIO', 'EPERM', 'EROFS'])('stays %s, and the root is not queried', (code) => {
    const query = () => {
      throw new Error('queried')
    }
    expect(getErrno(caught(() => chownOf(code, query)(FILE, 2000)))).toBe(code)
  })
})

describe('a change of a deleted inode', () => {
  const stale = new SystemError('fchownat', 'ESTALE', 'an open handle')
  const change = () => {
    throw new DeletedInodeError(stale)
  }

  it('is skipped and reported with its path', () => {
    const report = createWalkReport()
    expect(skipDeletedInode(report, path('a/b'), change)).toBe('overtaken')
    expect(report.left).toEqual({ 'gone or replaced during the walk': { count: 1, examples: ['a/b'] } })
  })

  it('ends the walk by the error of the server if the inode is the root', () => {
    expect(caught(() => skipDeletedInode(createWalkReport(), path(''), change))).toBe(stale)
  })

  it('is not skipped for any other error', () => {
    expect(getErrno(caught(() => skipDeletedInode(createWalkReport(), path('a'), fail('EIO'))))).toBe('EIO')
  })
})
