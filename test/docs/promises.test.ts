import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from './pages.ts'

/** What the README says that modekeep never does, in its own words and order, each part with the tests that hold it. */
const PROMISES: readonly (readonly [part: string, ...tests: readonly (readonly [file: string, name: string])[]])[] = [
  [
    'Change an inode without a request: without `ownership`,',
    ['conformance/six-files', 'are not changed without ownership, for any fsGroup of the pod'],
  ],
  [
    'and for read-only volumes, it changes nothing in the volume.',
    ['conformance/six-files', 'are not changed if the volume is read-only, and cannot be written through the mount'],
    [
      'differential/grant',
      'group access "grant" changes nothing for a read-only pod, for which kubelet does not walk either',
    ],
  ],
  [
    'Add a permission bit unless asked to (`groupAccess: grant`),',
    ['conformance/ownership', 'applies the group, sets set-gid on directories, and adds no permission bit'],
  ],
  [
    'let a named entry of an ACL gain rights,',
    ['real-mounts/grant', "adds the owning group's bits in an ACL, and no rights to named users or groups"],
    ['real-mounts/changes', 'adds no rights to the mask of an ACL that was set after the inspection'],
  ],
  [
    'drop a set-uid bit or a file capability,',
    [
      'real-mounts/kept',
      'keep set-uid and set-gid bits of files, capabilities, ACLs, other attributes, owners and times',
    ],
    ['real-mounts/boundaries', 'restores file capabilities after a chown, and when a restore changes the group back'],
  ],
  [
    'or move the ctime of a file that needs no change.',
    ['real-mounts/kept', 'keep the ctime of inodes that need no change, with and without set-id bits'],
  ],
  [
    'Change anything a second time because kubelet restarted,',
    [
      'conformance/six-files',
      'keep their modes and get the group; a restart, a second pod and a reboot change nothing',
    ],
  ],
  [
    "or undo what the volume's users changed since.",
    ['conformance/ownership', 'skips inodes that users changed since: their stricter modes and their groups stay'],
    ['conformance/ownership', 'restores unchanged inodes, and skips inodes that users changed since'],
  ],
  [
    'Follow a symbolic link',
    ['conformance/ownership', 'neither follows nor changes links, including links that lead out'],
    ['race/outside', 'does not leave the volume if directories and files are exchanged with links to the node'],
  ],
  [
    'or enter a mount inside the volume,',
    ['real-mounts/inside', 'does not enter a mount of another device, of the same, of a file or of a part of itself'],
  ],
  [
    'open a FIFO,',
    ['real-mounts/opened', 'is no FIFO, socket, device, file or link target, neither in a walk nor in a restore'],
  ],
  [
    'or change the group of a device node',
    ['real-mounts/inside', 'skips block and character devices, including their modes'],
  ],
  [
    'or of a file with hard links outside the volume.',
    ['real-mounts/inside', 'skips an inode with a name outside, under each name inside, until that name is deleted'],
  ],
  [
    'It reports what it skipped and why.',
    [
      'real-mounts/boundaries',
      'reports immutable files, changes all others, and retries the immutable ones in the next walk',
    ],
    [
      'differential/grant',
      'group access "grant" skips inodes that cannot be changed, like kubelet, and reports the skipped inodes',
    ],
  ],
  [
    'Show a pod a volume before its group is given completely: the mount appears whole or not at all.',
    [
      'crash/every-action',
      'during a mount shows nothing or the complete volume, the next mount completes, and a restore returns the first state',
    ],
    [
      'crash/kubelet-restart',
      "after kubelet's restart in mid-walk the mount is attached after the last system call that changes an inode",
    ],
  ],
  [
    'Show a secret in a command line,',
    [
      'helper/secrets-nowhere',
      'a secret is not in the arguments or environment of any process, or in a file, while the helper runs',
    ],
  ],
  [
    'a log, a message,',
    ['helper/secrets-nowhere', 'a secret is not in the error message of a helper that fails and prints its input'],
    ['attacks/csi', 'writes a secret to no argument, environment, log, event or record'],
  ],
  [
    'or a file that outlives the call.',
    ['helper/secrets-nowhere', 'a secret is not in the reply, the log or the records of a call, or in other processes'],
    ['security/node-user', 'finds no secret in copies of the state directory and the log'],
  ],
]

const said = fs.readFileSync(join(ROOT, 'README.md'), 'utf8')

it('each part of the README\'s section "What it will never do" has a test', () => {
  const [, section = ''] = /^## What it will never do\n([\s\S]*?)^## /m.exec(said) ?? []
  const words = section.replaceAll(/^- /gm, '').trim().replaceAll(/\s+/g, ' ')
  expect(PROMISES.map(([part]) => part).join(' ')).toBe(words)
})

const HELD = PROMISES.flatMap(([part, ...tests]) => tests.map(([file, name]) => [part, file, name] as const))

it.each(HELD)('the README\'s promise "%s" has a test in %s: %s', (_part, file, name) => {
  const text = fs.readFileSync(join(ROOT, `test/${file}.test.ts`), 'utf8')
  // A test that is switched off holds nothing.
  expect(text).toMatch(new RegExp(`^ *it\\((['"])${name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}\\1,`, 'm'))
})
