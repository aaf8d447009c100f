import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createGroupSwapMap, formatIdRanges } from '../../../src/kernel/id-map.ts'
import { openUserNamespace } from '../../../src/kernel/linux/mounts.ts'
import { addSkipReason, cannotMountWith } from '../../helpers/needs.ts'
import { isRoot } from '../../helpers/stage.ts'

const TESTED_MODULE_URL = `${import.meta.dirname}/../../../src/kernel/linux/mounts.ts`

/** Returns the error code and the message of the same call in a process under a command. */
function refusedUnder(...command: string[]): string {
  const ask = `
    const { openUserNamespace } = await import(${JSON.stringify(TESTED_MODULE_URL)})
    const gids = [{ disk: 0, shown: 0, count: 4294967295 }]
    try { openUserNamespace({ uids: gids, gids }); console.log('opened') } catch (error) { console.log(error.code, error.message) }`
  const [name = '', ...args] = [...command, process.execPath, '--input-type=module', '-e', ask]
  return execFileSync(name, args, { encoding: 'utf8' }).trim()
}

const descriptors = () => fs.readdirSync('/proc/self/fd').length
const children = () => fs.readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim()

describe.skipIf(!isRoot)(
  addSkipReason('a user namespace that swaps two groups', cannotMountWith('nsenter', 'unshare')),
  () => {
    it('has the requested maps, and exists only through its descriptor', () => {
      const [open, running] = [descriptors(), children()]
      const namespace = openUserNamespace(createGroupSwapMap(5, 2000))
      onTestFinished(() => fs.closeSync(namespace))
      expect(descriptors()).toBe(open + 1)
      // No zombie is left either.
      expect(children()).toBe(running)
      const inside = (map: string) =>
        execFileSync('nsenter', [`--user=/proc/${process.pid}/fd/${namespace}`, 'cat', `/proc/self/${map}`], {
          encoding: 'utf8',
        }).replaceAll(/^ +| +(?= )/gm, '')
      expect(inside('gid_map')).toBe(formatIdRanges(createGroupSwapMap(5, 2000).gids))
      expect(inside('uid_map')).toBe('0 0 4294967295\n')
    })

    it('is refused with the limit if the node allows none', () => {
      const off = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
      const said = refusedUnder('unshare', '--user', '--map-root-user', 'sh', '-c', off, 'sh')
      expect(said).toMatch(/^ENOSPC .*user\.max_user_namespaces is 0/)
    })

    it('is refused when its map is written if this process itself has few mapped ids', () => {
      expect(refusedUnder('unshare', '--user', '--map-root-user')).toMatch(/^EPERM uid_map/)
    })

    it('leaves no child and no descriptor if it is refused', () => {
      const [open, running] = [descriptors(), children()]
      const gids = [{ disk: 0, shown: 0, count: 0 }]
      expect(() => openUserNamespace({ uids: gids, gids })).toThrow(/^uid_map .*EINVAL/)
      expect([descriptors(), children()]).toEqual([open, running])
    })
  },
)
