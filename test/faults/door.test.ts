import { describe, expect, it } from 'vitest'
import { readSeed, SEED_VARIABLE } from '../helpers/door-seed.ts'
import { cannotInject } from '../helpers/inject.ts'
import { PATIENCE } from '../helpers/size.ts'
import { FAULTS, faultsNamed } from './fault.ts'
import { runMatrix } from './matrix.ts'
import { COMMANDS } from './scenario.ts'

const title = `a resident worker that is killed, or whose system call fails, during a call${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '')(title, () => {
  it(
    'kubelet gets one reply, the repeated call through the same worker succeeds, and nothing remains: a tenth of the system calls',
    async () => {
      const seed = readSeed()
      console.log(`faults in a resident worker: ${SEED_VARIABLE}=${seed}`)
      const { rows, failures } = await runMatrix({
        commands: COMMANDS,
        faults: faultsNamed(FAULTS),
        every: 1,
        only: '',
        isDoor: true,
        seed,
      })
      // An assertion would shorten what befell the command.
      if (failures.length > 0) throw new Error(failures.join('\n'))
      const sum = (key: 'tried' | 'struck') => rows.reduce((total, row) => total + row[key], 0)
      console.log(`faults in a resident worker: ${sum('tried')} tried, ${sum('struck')} struck it, all survived`)
      expect(sum('struck')).toBeGreaterThan(sum('tried') / 2)
    },
    PATIENCE,
  )
})
