// A process in a mount namespace of its own, which holds one scenario's stage at a time.
import { jobsOf, strike } from './every-fault.ts'
import { type Injector, ownProcessInjector } from './injector.ts'
import { type Answer, DOOR_OPTION, type Order } from './messages.ts'
import { ResidentInjector } from './resident-injector.ts'
import type { Scenario } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'

interface OpenScenario {
  number: number
  scenario: Scenario
  injector: Injector
}

let open: OpenScenario | undefined

async function scenarioOf(number: number): Promise<OpenScenario> {
  if (open?.number === number) return open
  await close()
  const resident = process.argv.includes(DOOR_OPTION) ? new ResidentInjector() : undefined
  const scenario = SCENARIOS[number]?.open(resident)
  if (scenario === undefined) throw new Error(`no scenario ${number}`)
  open = { number, scenario, injector: resident ?? ownProcessInjector }
  return open
}

async function close(): Promise<void> {
  await open?.injector.close()
  open?.scenario.close()
  open = undefined
}

async function obey(order: Order): Promise<Answer> {
  try {
    const { scenario, injector } = await scenarioOf(order.scenario)
    if ('strike' in order) return { outcome: await strike(scenario, injector, order.strike) }
    return { title: scenario.title, jobs: await jobsOf(scenario, injector, order.jobsOf) }
  } catch (error) {
    return { error: error instanceof Error ? `${error.stack}` : String(error) }
  }
}

process.on('message', (order: Order) => void obey(order).then((answer) => process.send?.(answer)))
process.on('disconnect', () => {
  void close().then(() => process.exit())
})
