import { describe, expect, it } from 'vitest'
import { type OptionRule, optionFaults, ownOptions } from '../../src/filesystem/options.ts'
import { DEFAULT_CONFIG } from '../../src/protocol/defaults.ts'

const OWN: ReadonlyMap<string, OptionRule> = new Map([['size', { pattern: /^size=\d+$/, example: 'size=64' }]])
const ORDINARY = 'ro, rw, nosuid, nodev, noexec, exec, relatime, noatime, strictatime, nodiratime, nosymfollow, size'

function faults(options: string[], allowed?: Record<string, string[]>) {
  const config = allowed ? { ...DEFAULT_CONFIG, allowedMountOptions: allowed } : DEFAULT_CONFIG
  return optionFaults('disk', options, OWN, config)
}

function notAllowed(option: string, use: string): string {
  return `option "mountOptions" has "${option}", not allowed for disk on this node: use ${use}, or have it added to allowedMountOptions.disk of the node's modekeep configuration`
}

describe('mount options', () => {
  it.each([[[]], [['noatime', 'noexec']], [['size=5', 'ro']], [['rw', 'exec']]])('%j are accepted', (options) => {
    expect(faults(options)).toEqual([])
  })

  it.each([['suid'], ['dev'], ['bogus'], ['bind'], ['remount'], ['X'], ['=5'], ['__proto__'], ['context=x'], ['RO']])(
    '%j is not allowed unless the node says so',
    (option) => {
      expect(faults([option])).toEqual([notAllowed(option, ORDINARY)])
    },
  )

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
    expect(faults(['ro', 'rw', 'bogus', 'size=x'])).toEqual([
      'option "mountOptions" has both ro and rw: keep one',
      notAllowed('bogus', ORDINARY),
      'option "mountOptions" has "size=x": write it like size=64',
    ])
  })

  it('are only those the node names for the kind, once it names any', () => {
    expect(faults(['suid', 'size=5'], { disk: ['suid', 'size'] })).toEqual([])
    expect(faults(['noatime'], { disk: ['suid', 'size'] })).toEqual([notAllowed('noatime', 'suid, size')])
    expect(faults(['ro'], { disk: [] })).toHaveLength(1)
  })

  it('of another kind say nothing about this one', () => {
    expect(faults(['suid'], { other: ['suid'] })).toEqual([notAllowed('suid', ORDINARY)])
  })

  it("that are flags are not the file system's own", () => {
    expect(ownOptions(['ro', 'size=5', 'noatime', 'mode=0770'])).toEqual(['size=5', 'mode=0770'])
  })
})
