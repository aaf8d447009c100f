import { expect } from 'vitest'
import type { ContainerTaskResult } from '../../src/container/container-task.ts'
import type { CsiTaskOutcome } from '../../src/frontends/csi/worker-tasks.ts'
import { type Ended, modekeepOn } from '../helpers/inject.ts'
import { expectPreceded } from './durable-first.ts'
import { FaultNode } from './fault-node.ts'
import { processesOf } from './leftovers.ts'
import { isItsOwn, ownCalls, residentCalls } from './own-calls.ts'
import type { ResidentInjector } from './resident-injector.ts'
import type { After, Scenario } from './scenario.ts'

/** A call of modekeep, what is there before it, and what must be true after it. */
export interface Situation {
  title: string
  pods?: string[]
  args(on: FaultNode): string[]
  /** What it reads from stdin. */
  input?(on: FaultNode): string
  before?(on: FaultNode): Promise<void>
  /** After any fault, nothing is damaged, and a pod sees nothing or the complete volume. */
  sound(on: FaultNode, after: After): void
  /** What the call says with Success, or with exit status 0. */
  promised(on: FaultNode): void
  /** Ways to go on, each in its turn; whichever comes, the unmounts that follow leave nothing. */
  next: ((on: FaultNode, after: After) => Promise<void>)[]
  /**
   * Of a volume that was to come, or is forgotten, no record speaks: heal, or the first call after a reboot, removes its lock.
   */
  isHealed?: boolean
  /** Who reads the answer: the CSI server or the runtime's plugin that of a worker. */
  reader: 'kubelet' | 'person' | 'server' | 'plugin'
}

/** @param resident makes the situation's FlexVolume calls */
export function callScenario(situation: Situation, resident?: ResidentInjector): Scenario {
  const on = new FaultNode(resident && ((program) => resident.call(program)))
  on.pods = situation.pods ?? ['a']
  for (const pod of on.pods) on.node.podDirectory(pod)
  const { reader } = situation
  return {
    title: situation.title,
    program: () => modekeepOn(on.node, situation.args(on), situation.input?.(on)),
    async prepare() {
      on.fresh()
      await situation.before?.(on)
    },
    points(ended, calls) {
      expect(hasSucceeded(reader, ended), JSON.stringify(ended)).toBe(true)
      return resident ? residentCalls(calls) : ownCalls(calls, `${on.node.top}/config.json`)
    },
    isRuntimes: (struck) => !isItsOwn(struck),
    async check(after) {
      const { ended, fault, point } = after
      expect(processesOf(on.node.top)).toEqual([])
      // The fault cannot be reported if the answer itself cannot be written.
      const struck = after.calls.find(({ injected }) => injected)?.text ?? point.text
      const isReplyLost = ended.signal === 'SIGKILL' || struck.startsWith('write(1<')
      // The reply is lost with no worker: the loader makes the call again, in its own process.
      if (resident || !isReplyLost) expectAnswer(reader, after)
      if (resident && fault.name === 'KILL' && after.reached) expect(hasSucceeded(reader, ended)).toBe(true)
      expectPreceded(after, on.node.state)
      situation.sound(on, after)
      if (hasSucceeded(reader, ended)) situation.promised(on)
      await situation.next[after.turn % situation.next.length]?.(on, after)
      await on.expectAllGone(fault.lasts || situation.isHealed === true)
    },
    close: () => on.close(),
  }
}

const SUCCESS = {
  kubelet: /"status":"Success"/,
  person: /^/,
  server: /\{"outcome":\{\}\}/,
  plugin: /\{"outcome":\{("mounts":.*)?\}\}/,
} as const

export function hasSucceeded(reader: Situation['reader'], { text, code }: Ended): boolean {
  return code === 0 && SUCCESS[reader].test(text)
}

/** An errno's name, or a sentence about a thing that is named. */
const NAMES_WHAT_FAILED = /\bE[A-Z0-9]{2,}\b|"[^"]+"|\/\w+/

function expectAnswer(reader: Situation['reader'], { ended: { text, errors, code, signal } }: After): void {
  expect(signal).toBe(null)
  if (reader === 'person') {
    expect([0, 1]).toContain(code)
    if (code === 1) expect(text + errors).toMatch(NAMES_WHAT_FAILED)
    return
  }
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  if (reader === 'server') {
    const { outcome } = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as { outcome: CsiTaskOutcome }
    if (outcome.failure) expect(outcome.failure.message).toMatch(NAMES_WHAT_FAILED)
    return
  }
  if (reader === 'plugin') {
    // The outcome is the last line, after those of its progress.
    const { outcome } = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as { outcome: ContainerTaskResult }
    if (outcome.failure !== undefined) expect(outcome.failure).toMatch(NAMES_WHAT_FAILED)
    return
  }
  expect(text).toMatch(/^\{[^\n]*\}\n$/)
  const { status, message } = JSON.parse(text) as { status: string; message?: string }
  expect(['Success', 'Failure']).toContain(status)
  if (status === 'Failure') expect(message).toMatch(NAMES_WHAT_FAILED)
}
