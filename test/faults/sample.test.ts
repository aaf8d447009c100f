import { describe, expect, it } from 'vitest'
import { cannotInject } from '../helpers/inject.ts'
import { PATIENCE, sized } from '../helpers/size.ts'
import { FAULTS, faultsNamed } from './fault.ts'
import { runMatrix } from './matrix.ts'
import { COMMANDS } from './scenario.ts'

/** Of all that can befall each situation of a command. `npm run test:faults` tries every one of them. */
const MOST = sized(1, 8, Number.POSITIVE_INFINITY)
const title = `a system call that fails, or at which the command is killed${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '')(title, () => {
  it.each(COMMANDS)(
    '%s with a failing system call reports or survives the failure, the repeated command succeeds, and nothing remains',
    async (command) => {
      const asked = { commands: [command], faults: faultsNamed(FAULTS), every: 1, most: MOST, only: '' }
      const { rows, failures } = await runMatrix(asked)
      // An assertion would shorten what befell the command.
      if (failures.length > 0) throw new Error(failures.join('\n'))
      const tried = rows.reduce((sum, row) => sum + row.tried, 0)
      console.log(`${command}: ${tried} faults tried, all survived`)
      expect(tried).toBeGreaterThanOrEqual(Math.min(MOST, 11))
    },
    PATIENCE,
  )
})
