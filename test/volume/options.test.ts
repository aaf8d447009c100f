import { describe, expect, it } from 'vitest'
import {
  filterFileSystemOptions,
  findOptionFaults,
  findRequiredOptionNaming,
  type OptionRule,
} from '../../src/volume/kind/options.ts'
import { rendered } from '../helpers/rendered.ts'

const OWN: ReadonlyMap<string, OptionRule> = new Map([
  ['size', { matches: (option) => /^size=\d+$/.test(option), example: 'size=64' }],
])
const EVERY =
  'ro, rw, nosuid, suid, nodev, dev, noexec, exec, relatime, noatime, strictatime, nodiratime, nosymfollow, size'

function faults(options: string[], takesAny = false) {
  return findOptionFaults('disk', options, OWN, takesAny)
}

function unknown(...options: string[]): string {
  return `option "mountOptions" has ${JSON.stringify(options)}: disk takes ${EVERY}`
}

describe('mount options', () => {
  it.each([[[]], [['noatime', 'noexec']], [['size=5', 'ro']], [['rw', 'exec']]])('%j are accepted', (options) => {
    expect(faults(options)).toEqual([])
  })

  it.each([
    ['suid', 'name'],
    ['dev', 'name'],
    ['noatime', 'none'],
    ['size=5', 'none'],
    ['risky=1', 'name'],
    ['sec=krb5', 'value'],
    ['sec=sys', 'none'],
    ['unheard-of', 'name'],
  ])('%s must be named by a rule to this extent: %s', (option, naming) => {
    const plain = { matches: () => true, example: '' }
    const own = new Map<string, OptionRule>([
      ...OWN,
      ['risky', { ...plain, isRisky: true }],
      ['sec', { ...plain, onlyNamed: ['krb5'] }],
    ])
    expect(findRequiredOptionNaming(own, option)).toBe(naming)
  })

  it('that are unknown are passed on to a program that may know them, except with control characters', () => {
    expect(faults(['passwd_file=/x', 'allow-root'], true)).toEqual([])
    expect(rendered(faults(['a\nb'], true))).toEqual([unknown('a\nb')])
    expect(rendered(faults(['size=x'], true))).toEqual(['option "mountOptions" has "size=x": write it like size=64'])
  })

  it.each([['bogus'], ['bind'], ['remount'], ['X'], ['=5'], ['__proto__'], ['context=x'], ['RO'], ['SIZE=5']])(
    '%j is refused as unknown',
    (option) => {
      expect(rendered(faults([option]))).toEqual([unknown(option)])
    },
  )

  it('that are unknown are reported together as one fault', () => {
    expect(rendered(faults(['bogus', 'suid', 'ro', 'other=1', 'dev', 'bogus']))).toEqual([
      unknown('bogus', 'other=1', 'bogus'),
    ])
  })

  it('that are many and unknown are truncated in the message', () => {
    const many = Array.from({ length: 30 }, (_, n) => `bogus${n}`)
    const shown = JSON.stringify(many)
    expect(rendered(faults(many))).toEqual([
      `option "mountOptions" has ${shown.slice(0, 120)}… (${shown.length} characters): disk takes ${EVERY}`,
    ])
  })

  it.each([[['size=5', 'size=6']], [['size=5', 'size=5']], [['size=5', 'ro', 'size=6']]])(
    '%j are refused because an option of the file system is given twice',
    (options) => {
      expect(rendered(faults(options))).toEqual(['option "mountOptions" has size twice: keep one'])
    },
  )

  it('that are given twice with an invalid value cause both faults', () => {
    expect(rendered(faults(['size=5', 'size=x']))).toEqual([
      'option "mountOptions" has "size=x": write it like size=64',
      'option "mountOptions" has size twice: keep one',
    ])
  })

  it('that are flags may be repeated', () => {
    expect(faults(['ro', 'noatime', 'ro', 'noatime'])).toEqual([])
  })

  it.each([
    ['size', 'option "mountOptions" has "size": write it like size=64'],
    ['size=', 'option "mountOptions" has "size=": write it like size=64'],
    ['size=x', 'option "mountOptions" has "size=x": write it like size=64'],
    ['ro=1', 'option "mountOptions" has "ro=1": write ro without a value'],
    ['noatime=', 'option "mountOptions" has "noatime=": write noatime without a value'],
  ])('%j has an invalid value, and the message shows a valid one', (option, fault) => {
    expect(rendered(faults([option]))).toEqual([fault])
  })

  it('that contradict each other are reported in pairs, with every other fault', () => {
    expect(rendered(faults(['size=x', 'suid', 'ro', 'rw', 'bogus']))).toEqual([
      'option "mountOptions" has both ro and rw: keep one',
      unknown('bogus'),
      'option "mountOptions" has "size=x": write it like size=64',
    ])
  })

  it('that are flags are not passed to the file system', () => {
    expect(filterFileSystemOptions(['ro', 'size=5', 'noatime', 'mode=0770'])).toEqual(['size=5', 'mode=0770'])
  })
})
