import * as fs from 'node:fs'
import { cannotServe } from '../helpers/fuse-node.ts'
import { runConfined } from '../helpers/own-namespaces.ts'
import { readOptions, USAGE } from './options.ts'

// The first process reaps what daemons leave.
const ENTER = 'mount -t proc proc /proc && "$@"; exit $?'
const UNSHARE = ['--pid', '--fork', '--kill-child', '--mount', '--propagation', 'private']

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(USAGE)
    return 0
  }
  const cannot = cannotServe('bindfs', 'mkfs.ext4', 'setfattr', 'losetup')
  if (cannot) throw new Error(cannot)
  if (!fs.existsSync('/mnt')) throw new Error('it mounts a disk of its own at /mnt: make that directory')
  const inside = [process.execPath, `${import.meta.dirname}/inside.ts`]
  return runConfined(['unshare', ...UNSHARE, 'sh', '-c', ENTER, 'sh', ...inside, JSON.stringify(options)], process.env)
}

main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(`test:soak: ${error instanceof Error ? error.message : error}`)
    process.exit(2)
  },
)
