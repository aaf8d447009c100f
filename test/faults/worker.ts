// A process in a mount namespace of its own, which holds one scenario's stage at a time.
import { jobsOf, strike } from './every-fault.ts'
import type { Answer, Order } from './messages.ts'
import type { Scenario } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'

let open: { number: number; scenario: Scenario } | undefined

function scenarioOf(number: number): Scenario {
  if (open?.number === number) return open.scenario
  open?.scenario.close()
  open = undefined
  const scenario = SCENARIOS[number]?.open()
  if (scenario === undefined) throw new Error(`no scenario ${number}`)
  open = { number, scenario }
  return scenario
}

async function obey(order: Order): Promise<Answer> {
  try {
    const scenario = scenarioOf(order.scenario)
    if ('strike' in order) return { outcome: await strike(scenario, order.strike) }
    return { title: scenario.title, jobs: await jobsOf(scenario, order.jobsOf) }
  } catch (error) {
    return { error: error instanceof Error ? `${error.stack}` : String(error) }
  }
}

process.on('message', (order: Order) => void obey(order).then((answer) => process.send?.(answer)))
process.on('disconnect', () => {
  open?.scenario.close()
  process.exit()
})
