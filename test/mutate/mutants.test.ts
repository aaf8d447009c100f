import { describe, expect, it } from 'vitest'
import { ImportGraph } from './import-graph.ts'
import { findMutants } from './mutants.ts'

const TEXT = `
type Kind = 'a' | 'b'
export function isFull(used: number, most: number): boolean {
  if (used === 0 && !most) return false
  return used >= most
}
class Queue {
  add(one: Kind): void {
    this.check()
    if (one) this.items.push(one as Kind)
  }
}
const wait = async (ms: number) => {
  await sleep(ms * 2)
}
`

/** Each mutant's name and the text that it makes of its expression. */
function nameMutants(text: string): string[] {
  return findMutants(text).map(({ functionName, operator, index, replacement }) =>
    [functionName, operator, index, replacement].join(' '),
  )
}

describe('mutants', () => {
  it('are named by function, operator and number, and each changes one expression, never a type', () => {
    expect(nameMutants(TEXT)).toEqual([
      'isFull logic 0 used === 0 || !most',
      'isFull equality 0 used !== 0',
      'isFull not 0 most',
      'isFull boolean 0 true',
      'isFull order 0 used > most',
      'Queue.add call 0 void 0',
      'Queue.add condition 0 !(one)',
      'Queue.add call 1 void 0',
      'wait call 0 void 0',
      'wait arithmetic 0 ms / 2',
    ])
  })

  it('are tested by the tests that import the changed file, with unit tests and kernel tests separate', () => {
    const { unit, kernel } = new ImportGraph(process.cwd()).findTests('src/kernel/mount-table/mountinfo.ts')
    expect(unit).toContain('test/kernel/mount-table/mountinfo.test.ts')
    expect(kernel.length).toBeGreaterThan(0)
    expect(unit.concat(kernel).every((file) => file.endsWith('.test.ts'))).toBe(true)
  })
})
