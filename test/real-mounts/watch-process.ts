import { readdirSync, statSync, writeSync } from 'node:fs'
import { createTerminationSignal, startThread } from '../../driver/process.ts'
import { watchNodeMounts } from '../../src/repair/watch.ts'

// Watches the directories of its arguments; tells in a line of each heal what it finds there, and can be told to fail or to
// exit in one.
const [what, ...watched] = process.argv.slice(2)
const say = (line: string) => writeSync(1, `${line}\n`)
let heals = 0

await watchNodeMounts(
  async () => {
    say(`heal ${++heals} ${watched.map(look).join(' ')}`)
    if (what === 'exit' && heals === 2) process.exit(7)
    if (what === 'fail' && heals === 1) throw new Error('no luck')
    return { watched, daemons: [], isUnsettled: false, isBlind: false }
  },
  {
    warn: (message) => say(`warn ${message}`),
    failed: (error) => say(`failed ${error}`),
    signal: createTerminationSignal(),
    startMountWatch: (stop) => startThread('mount-watch', stop),
  },
)
say('ended')

function look(directory: string): string {
  const stat = statSync(directory, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.birthtimeNs}:${readdirSync(directory).length}` : 'none'
}
