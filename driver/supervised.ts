import { markSupervised } from '../src/host/linux/dying-lock-holder.ts'
import type { NodeConfig } from '../src/request/defaults.ts'
import { computePatienceMs } from '../src/store/given-up-walks.ts'
import type { GivenUpProcess, Session } from '../src/store/session.ts'
import { writeAll } from './streams.ts'

const REPORT_INTERVAL_MS = 500

type SupervisedReporting = Required<Pick<Session, 'isAlive' | 'limitSilence'>> & Pick<Session, 'givenUp'>

/**
 * Reports to the loader's process, which kills this one after too long without a report: see driver/loader/supervise.c.
 * @param value the value of the variable that the loader sets
 */
export function reportToLoader(value: string, config: NodeConfig): SupervisedReporting {
  markSupervised()
  const [pid, silentMs, end] = value.split(' ')
  const limitSilence = (milliseconds = computePatienceMs(config)) => void writeAll(`${milliseconds}\n`)
  const isAlive = startReporting(() => void writeAll('\n'))
  limitSilence()
  const givenUp: GivenUpProcess | undefined =
    end === undefined
      ? undefined
      : { pid: Number(pid), seconds: Math.round(Number(silentMs) / 1000), isLeft: end === 'left' }
  return { isAlive, limitSilence, givenUp }
}

/**
 * Calls `report` at a fixed interval from now on.
 * @returns the same call, rate-limited, for synchronous work during which no timer fires
 */
export function startReporting(report: () => void): () => void {
  let last = performance.now()
  const isAlive = () => {
    if (performance.now() - last < REPORT_INTERVAL_MS) return
    last = performance.now()
    report()
  }
  setInterval(isAlive, REPORT_INTERVAL_MS).unref()
  return isAlive
}
