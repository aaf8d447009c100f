import { expect, it } from 'vitest'
import type { Session } from '../../src/store/session.ts'
import { endStopped, isStopped } from '../../src/volume/daemon.ts'
import { memoryStage } from '../helpers/stage.ts'

/** A node with these daemons, by their staging directories. */
function nodeWith(states: Record<string, string>): { session: Session; killed: string[] } {
  const session = memoryStage().session()
  const killed: string[] = []
  const nameIn = (path: string) => path.split('/').find((part) => part in states) ?? ''
  const daemons = {
    ...session.host.daemons,
    find: (argument: string) => {
      const state = states[nameIn(argument)]
      return state === undefined ? undefined : { pid: 7, state }
    },
    kill: (directory: string) => void killed.push(nameIn(directory)),
  }
  return { session: { ...session, host: { ...session.host, daemons } }, killed }
}

it('a daemon is stopped by a signal or a debugger, and not where it sleeps or is gone', () => {
  expect(['T', 't', 'S', 'D', 'R'].filter((state) => isStopped({ pid: 1, state }))).toEqual(['T', 't'])
  expect(isStopped(undefined)).toBe(false)
})

it('of the daemons of a mount that goes, those that are stopped are ended, and those that run are told', () => {
  const { session, killed } = nodeWith({ old: 'T', writing: 'S', own: 't' })
  const left = endStopped(session, { staging: 'own', replacedDaemons: ['old', 'writing', 'gone'] })
  expect(left).toEqual(['writing'])
  expect(killed).toEqual(['old', 'own'])
})

it('a mount that no daemon serves has none to end', () => {
  const { session, killed } = nodeWith({ another: 'T' })
  expect(endStopped(session, { staging: undefined, replacedDaemons: [] })).toEqual([])
  expect(killed).toEqual([])
})
