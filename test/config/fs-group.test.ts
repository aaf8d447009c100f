import { describe, expect, it } from 'vitest'
import { parseFsGroup, parseGroupId } from '../../src/config/option-faults.ts'
import { rendered } from '../helpers/rendered.ts'

const OLD = 'kubernetes.io/fsGroup'
const NEW = 'kubernetes.io/mounterArgs.FsGroup'
const HOW =
  'a group is a decimal number from 0 to 4294967294 without sign, leading zeros or exponent; ' +
  "set the pod's securityContext.fsGroup to one, or leave it out"

describe('a group', () => {
  it.each([
    ['0', 0],
    ['1', 1],
    ['2000', 2000],
    ['4294967294', 4294967294],
    ['-1', 'none'],
  ])('parseGroupId of %j is %j', (text, group) => {
    expect(parseGroupId(text)).toBe(group)
  })

  it.each([
    ['4294967295'],
    ['4294967296'],
    ['99999999999'],
    ['18446744073709551616'],
    ['02000'],
    ['00'],
    ['-0'],
    ['-2'],
    ['--1'],
    ['-01'],
    ['2e3'],
    ['0x7d0'],
    ['2_000'],
    ['2,000'],
    [''],
    [' '],
    [' 5'],
    ['5 '],
    ['5\n'],
    ['+5'],
    ['5.0'],
    ['5.'],
    ['.5'],
    ['NaN'],
    ['Infinity'],
    ['root'],
    ['٥'],
    ['-1 '],
  ])('parseGroupId of %j is undefined', (text) => {
    expect(parseGroupId(text)).toBeUndefined()
  })
})

describe("the pod's group", () => {
  it.each([
    ['absent', {}, undefined],
    ['-1', { [NEW]: '-1' }, undefined],
    ['from kubelet 1.15 and later', { [NEW]: '2000' }, 2000],
    ['from kubelet up to 1.14', { [OLD]: '2000' }, 2000],
    ['0', { [NEW]: '0' }, 0],
    ['the largest', { [NEW]: '4294967294' }, 4294967294],
    ['given twice with the same value', { [OLD]: '2000', [NEW]: '2000' }, 2000],
    ['given twice as empty', { [OLD]: '-1', [NEW]: '-1' }, undefined],
  ])('the group of the pod, %s', (_what, options: Record<string, string>, group) => {
    expect(parseFsGroup(new Map(Object.entries(options)))).toEqual({ group, faults: [] })
  })

  it.each([['02000'], ['2e3'], [''], [' 5'], ['+5'], ['5.0'], ['4294967295']])(
    '%j is a fault that names the key, the value and the remedy',
    (text) => {
      for (const key of [OLD, NEW]) {
        expect(rendered(parseFsGroup(new Map([[key, text]])))).toEqual({
          group: undefined,
          faults: [`option "${key}" is ${JSON.stringify(text)}: ${HOW}`],
        })
      }
    },
  )

  it.each([
    ['2000', '3000'],
    ['2000', '-1'],
    ['-1', '0'],
  ])('the groups %s of one key and %s of the other contradict each other', (old, recent) => {
    const { faults } = parseFsGroup(
      new Map([
        [OLD, old],
        [NEW, recent],
      ]),
    )
    expect(rendered(faults)).toEqual([`options "${OLD}" ("${old}") and "${NEW}" ("${recent}") differ: keep one`])
  })

  it('an invalid group under both keys is reported for both', () => {
    const { group, faults } = parseFsGroup(
      new Map([
        [OLD, '02000'],
        [NEW, '+5'],
      ]),
    )
    expect(group).toBeUndefined()
    expect(rendered(faults)).toEqual([`option "${OLD}" is "02000": ${HOW}`, `option "${NEW}" is "+5": ${HOW}`])
  })
})
