import { writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { write } from '../helpers/atomic-writer.ts'

// Flips a volume directory until it is ended; a byte on stdout for each flip.
const [directory = ''] = process.argv.slice(2)
for (let turn = 1; ; turn++) {
  try {
    write(directory, { name: `turn ${turn}`, 'dir/name': `turn ${turn}` })
  } catch (error) {
    // Of content that is mounted just now another mount hangs, until it is gone: kubelet's writer tries again, too.
    if (!/resource busy/.test((error as Error).message)) throw error
  }
  writeSync(1, '.')
  // A mount tries for two seconds: without a pause for it, each attempt could fail.
  await setTimeout(20)
}
