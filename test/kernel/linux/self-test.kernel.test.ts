import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Inodes, SystemError } from '../../../src/kernel/host.ts'
import { linuxInodes } from '../../../src/kernel/linux/inodes.ts'
import { linuxMounts } from '../../../src/kernel/linux/mounts.ts'
import { runSelfTest, type SelfTestResult } from '../../../src/kernel/linux/self-test.ts'
import { addSkipReason, cannotMountWith } from '../../helpers/needs.ts'
import { isRoot } from '../../helpers/stage.ts'

const TESTED_MODULE_URL = `${import.meta.dirname}/../../../src/kernel/linux/self-test.ts`

const differing = (tests: SelfTestResult[]) => tests.filter(({ difference }) => difference !== '')

describe.skipIf(!isRoot)(
  addSkipReason("the comparison of modekeep's system calls with Node's", cannotMountWith()),
  () => {
    afterEach(() => {
      vi.restoreAllMocks()
    })

    it('finds no difference on this node, and leaves no mount and no descriptor', () => {
      const seen = () => [linuxMounts.table(), fs.readdirSync('/proc/self/fd').length]
      const before = seen()
      const tests = runSelfTest()
      expect(differing(tests)).toEqual([])
      expect(tests).toHaveLength(9)
      expect(seen()).toEqual(before)
    })

    const real = { ...linuxInodes }
    it.each<[string, Partial<Inodes>, string[]]>([
      ['returns another mode', { statEntry: (...at) => ({ ...statOf(real.statEntry(...at)), mode: 0 }) }, ['statx']],
      ['returns no entries', { readEntries: () => new Uint8Array() }, ['getdents64']],
      [
        'returns another error',
        {
          openEntry(parent, name) {
            if (String(name).includes('no-such')) throw new SystemError('openat', 'EACCES', 'a name')
            return real.openEntry(parent, name)
          },
        },
        ['errors'],
      ],
      ['follows links', { openLinkFree: () => real.openTrusted('/') }, ['openat2']],
      ['sets no group', { chown: () => {} }, ['create and fchownat']],
      ['sets no mode', { chmod: () => {} }, ['fchmodat2']],
      ['stores another value', { getAttribute: () => Uint8Array.of(0) }, ['extended attributes']],
      ['lists no attribute', { attributeNames: () => '' }, ['extended attributes']],
      [
        'decodes names as text',
        { createFile: (tree, name, mode) => real.createFile(tree, Buffer.from(name.toString()), mode) },
        ['names that are no UTF-8'],
      ],
    ])('finds a layer that %s, with both results, and nothing else', (_what, layer, names) => {
      for (const [method, instead] of Object.entries(layer)) {
        vi.spyOn(linuxInodes as unknown as Record<string, () => void>, method).mockImplementation(instead as never)
      }
      const found = differing(runSelfTest())
      expect(found.map(({ name }) => name)).toEqual(names)
      for (const { difference } of found) expect(difference).toMatch(/it says .*, Node says /)
    })

    it('accepts the attributes that a security module adds to a file', () => {
      vi.spyOn(linuxInodes, 'attributeNames').mockImplementation(
        (...args) => `security.selinux\0${real.attributeNames(...args)}`,
      )
      expect(differing(runSelfTest())).toEqual([])
    })

    it('reports a failing call, and continues with the others', () => {
      vi.spyOn(linuxInodes, 'chmod').mockImplementation(() => {
        throw new SystemError('fchmodat2', 'EIO', 'file')
      })
      expect(differing(runSelfTest())).toEqual([{ name: 'fchmodat2', difference: expect.stringContaining('EIO') }])
    })

    it('reports what was not tested if this process may not mount', () => {
      const ask = `
      const { runSelfTest } = await import(${JSON.stringify(TESTED_MODULE_URL)})
      console.log(JSON.stringify(runSelfTest()))`
      const node = [process.execPath, '--input-type=module', '-e', ask]
      const said = execFileSync('setpriv', ['--bounding-set=-sys_admin', ...node], { encoding: 'utf8' })
      const difference = expect.stringMatching(/^not tried: .*EPERM/)
      expect(differing(JSON.parse(said))).toEqual([{ name: 'calls that change', difference }])
    })
  },
)

/** Returns the compared fields of an inode, without getters. */
function statOf({ uid, gid, links }: ReturnType<Inodes['statEntry']>) {
  return { uid, gid, links } as ReturnType<Inodes['statEntry']>
}
