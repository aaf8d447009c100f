import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/request/defaults.ts'
import { type OptionRule, optionFaults, ownOptions } from '../../src/volume/kind/options.ts'

const OWN: ReadonlyMap<string, OptionRule> = new Map([
  ['size', { matches: (option) => /^size=\d+$/.test(option), example: 'size=64' }],
])
const ORDINARY = 'ro, rw, nosuid, nodev, noexec, exec, relatime, noatime, strictatime, nodiratime, nosymfollow, size'
const EVERY =
  'ro, rw, nosuid, suid, nodev, dev, noexec, exec, relatime, noatime, strictatime, nodiratime, nosymfollow, size'

function faults(options: string[], allowed?: Record<string, string[]>) {
  const config = allowed ? { ...DEFAULT_CONFIG, allowedMountOptions: allowed } : DEFAULT_CONFIG
  return optionFaults('disk', options, OWN, config)
}

function unknown(...options: string[]): string {
  return `option "mountOptions" has ${JSON.stringify(options)}: disk takes ${EVERY}`
}

function notAllowed(options: string[], use = ORDINARY): string {
  return `option "mountOptions" has ${JSON.stringify(options)}, not allowed on this node: use ${use}, or have it added to allowedMountOptions.disk of the node's modekeep configuration`
}

describe('mount options', () => {
  it.each([[[]], [['noatime', 'noexec']], [['size=5', 'ro']], [['rw', 'exec']]])('%j are accepted', (options) => {
    expect(faults(options)).toEqual([])
  })

  it.each([['suid'], ['dev'], ['suid=1']])('%j is not allowed unless the node says so', (option) => {
    expect(faults([option])).toEqual([notAllowed([option])])
  })

  it.each([['bogus'], ['bind'], ['remount'], ['X'], ['=5'], ['__proto__'], ['context=x'], ['RO'], ['SIZE=5']])(
    '%j is unknown, whatever the node allows',
    (option) => {
      expect(faults([option])).toEqual([unknown(option)])
      expect(faults([option], { disk: [option, option.split('=')[0] ?? ''] })).toEqual([unknown(option)])
    },
  )

  it('that are unknown are one fault, and those not allowed another', () => {
    expect(faults(['bogus', 'suid', 'ro', 'other=1', 'dev', 'bogus'])).toEqual([
      unknown('bogus', 'other=1', 'bogus'),
      notAllowed(['suid', 'dev']),
    ])
  })

  it('that are unknown and many are cut where they are shown', () => {
    const many = Array.from({ length: 30 }, (_, n) => `bogus${n}`)
    const shown = JSON.stringify(many)
    expect(faults(many)).toEqual([
      `option "mountOptions" has ${shown.slice(0, 120)}… (${shown.length} characters): disk takes ${EVERY}`,
    ])
  })

  it.each([[['size=5', 'size=6']], [['size=5', 'size=5']], [['size=5', 'ro', 'size=6']]])(
    "%j gives one of the file system's own twice",
    (options) => {
      expect(faults(options)).toEqual(['option "mountOptions" has size twice: keep one'])
    },
  )

  it('given twice with a bad value are told both', () => {
    expect(faults(['size=5', 'size=x'])).toEqual([
      'option "mountOptions" has "size=x": write it like size=64',
      'option "mountOptions" has size twice: keep one',
    ])
  })

  it('that are flags may be repeated', () => {
    expect(faults(['ro', 'noatime', 'ro', 'noatime'])).toEqual([])
  })

  it('that are not allowed are not judged any further', () => {
    expect(faults(['size=x', 'size=y', 'ro=1'], { disk: ['noatime'] })).toEqual([
      notAllowed(['size=x', 'size=y', 'ro=1'], 'noatime'),
    ])
  })

  it.each([
    ['size', 'option "mountOptions" has "size": write it like size=64'],
    ['size=', 'option "mountOptions" has "size=": write it like size=64'],
    ['size=x', 'option "mountOptions" has "size=x": write it like size=64'],
    ['ro=1', 'option "mountOptions" has "ro=1": write ro without a value'],
    ['noatime=', 'option "mountOptions" has "noatime=": write noatime without a value'],
  ])('%j is a bad value, shown with a good one', (option, fault) => {
    expect(faults([option])).toEqual([fault])
  })

  it('that contradict each other are told in pairs, besides every other fault', () => {
    expect(faults(['size=x', 'suid', 'ro', 'rw', 'bogus'])).toEqual([
      'option "mountOptions" has both ro and rw: keep one',
      unknown('bogus'),
      notAllowed(['suid']),
      'option "mountOptions" has "size=x": write it like size=64',
    ])
  })

  it('are only those the node names for the kind, once it names any', () => {
    expect(faults(['suid', 'size=5'], { disk: ['suid', 'size'] })).toEqual([])
    expect(faults(['noatime'], { disk: ['suid', 'size'] })).toEqual([notAllowed(['noatime'], 'suid, size')])
    expect(faults(['ro'], { disk: [] })).toEqual([notAllowed(['ro'], 'none')])
  })

  it('of another kind say nothing about this one', () => {
    expect(faults(['suid'], { other: ['suid'] })).toEqual([notAllowed(['suid'])])
  })

  it("that are flags are not the file system's own", () => {
    expect(ownOptions(['ro', 'size=5', 'noatime', 'mode=0770'])).toEqual(['size=5', 'mode=0770'])
  })
})
