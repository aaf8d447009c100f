import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'

const skipReason = !isRoot
  ? 'mounts need root; run "sudo npm test"'
  : !fs.existsSync(BINARY)
    ? 'run "npm run build"'
    : ''

const USER = 1000

/** A configuration as another user may have written it at the path that kubelet's environment names. */
const ATTACKS: Record<string, { prepare(file: string): void; says: (file: string) => string }> = {
  "another user's file": {
    prepare: (file) => fs.chownSync(file, USER, 0),
    says: (file) => `${file} belongs to uid 1000 (mode 0644), so it is not used: chown root ${file}`,
  },
  'a file that every user can write': {
    prepare: (file) => fs.chmodSync(file, 0o666),
    says: (file) =>
      `${file} can be written by others than its owner (mode 0666, uid 0), so it is not used: chmod go-w ${file}`,
  },
  'a file that a group can write': {
    prepare: (file) => fs.chmodSync(file, 0o664),
    says: (file) => `${file} can be written by others than its owner (mode 0664, uid 0)`,
  },
  "a link to another user's file": {
    prepare(file) {
      fs.renameSync(file, `${file}.real`)
      fs.chownSync(`${file}.real`, USER, USER)
      fs.symlinkSync(`${file}.real`, file)
    },
    says: (file) => `${file} belongs to uid 1000`,
  },
  'a FIFO': {
    prepare(file) {
      fs.rmSync(file)
      execFileSync('mkfifo', [file])
    },
    says: (file) => `${file} is no regular file: write one there`,
  },
  'a device with endless content': {
    prepare(file) {
      fs.rmSync(file)
      fs.symlinkSync('/dev/zero', file)
    },
    says: (file) => `${file} is no regular file: write one there`,
  },
  'a file of 1 TiB': {
    prepare: (file) => fs.truncateSync(file, 2 ** 40),
    says: (file) => `${file} is larger than 1 MiB`,
  },
}

describe.skipIf(skipReason !== '')(
  `a configuration that users other than root control${skipReason && ` (skipped: ${skipReason})`}`,
  () => {
    it.each(Object.keys(ATTACKS))('is refused for mounts, and unmounts succeed: %s', (name) => {
      const { prepare, says } = ATTACKS[name] as (typeof ATTACKS)[string]
      const node = new BinaryNode()
      fs.mkdirSync(`${node.volumes}/data`)
      const file = `${node.top}/config.json`
      prepare(file)
      const directory = node.podDirectory('a')
      const env = node.environment()
      const call = (...args: string[]) => {
        const { stdout } = spawnSync(BINARY, args, { env, encoding: 'utf8', timeout: 10_000, killSignal: 'SIGKILL' })
        return JSON.parse(stdout || '"no answer within 10 s"')
      }
      const mounted = call('mount', directory, JSON.stringify({ source: `${node.volumes}/data` }))
      const unmounted = call('unmount', directory)
      const init = call('init')
      expect(mounted).toEqual({ status: 'Failure', message: expect.stringContaining(says(file)) })
      expect(node.layers('a')).toEqual([])
      // What kubelet needs on a node whose configuration is invalid goes on.
      expect(unmounted).toEqual({ status: 'Success' })
      expect(init).toMatchObject({ status: 'Success', message: expect.stringContaining(says(file)) })
    })
  },
)
