import { type Case, medianOf, processor, type Quantity, type Results, ratio, wall } from './results.ts'
import { differences, total } from './syscalls.ts'
import { MILLION, SMALL, type Tree, usual } from './trees.ts'

/** What a target is compared with: a number, or lists of what is not equal. */
type Measured = number | string[] | undefined

export interface Target {
  name: string
  goal: number | 'equal'
  must: number | 'equal'
  unit?: string
  measure(results: Results): Measured
  /** In which respect the run was smaller than the target, or what helps to understand it. */
  note?(results: Results): string | undefined
}

const KEEP = 'modekeep keep'
const GRANT = 'modekeep grant'
const MOUNT = 'modekeep, repeated mount'
const INIT = 'modekeep init'

type Side = readonly [Case, string]

/** The tree for which the targets hold. */
export const headline = ({ files }: Results): Tree => usual('ext4', files)

function over(of: Side, to: Side, quantity: Quantity = wall): (results: Results) => Measured {
  return (results) => {
    const [own, other] = [of, to].map((side) => medianOf(results.measurements, headline(results), ...side, quantity))
    return ratio(own, other)
  }
}

const growth = (walk: Case) => (results: Results) => {
  const [most, few] = [results.most, SMALL].map((files) =>
    medianOf(results.measurements, usual('ext4', files), walk, KEEP, ({ memory }) => memory),
  )
  return ratio(most, few)
}

const many = (files: number) => (files < MILLION ? `${files.toLocaleString('en')} files` : undefined)

function equal(which: 'manyFiles' | 'manyMounts'): (results: Results) => Measured {
  return ({ systemCalls }) => systemCalls && differences(systemCalls.few, systemCalls[which])
}

const calls = ({ systemCalls }: Results) => systemCalls && `${total(systemCalls.few)} calls`

/** How fast modekeep is to be, the journal included. */
export const TARGETS: readonly Target[] = [
  {
    name: 'first walk `keep` / kubelet',
    ...{ goal: 0.5, must: 0.8 },
    measure: over(['first walk', KEEP], ['first walk', 'kubelet']),
  },
  {
    name: 'first walk `grant` / kubelet',
    ...{ goal: 0.65, must: 0.95 },
    measure: over(['first walk', GRANT], ['first walk', 'kubelet']),
  },
  {
    name: 'nothing to do (`Always`, new mount) / kubelet',
    ...{ goal: 0.15, must: 0.28 },
    measure: over(['nothing to do', KEEP], ['nothing to do', 'kubelet']),
  },
  {
    name: 'restore / first walk',
    ...{ goal: 1, must: 1.2 },
    measure: over(['restore', KEEP], ['first walk', KEEP]),
  },
  {
    name: 'survey (`modekeep plan`) / `find -printf` over the same tree',
    ...{ goal: 1.2, must: 1.5 },
    measure: over(['survey', KEEP], ['survey', 'find -printf']),
  },
  {
    name: 'user time per inode, first walk `keep`, all threads',
    ...{ goal: 2, must: 3.5, unit: ' µs' },
    measure(results) {
      const user = medianOf(results.measurements, headline(results), 'first walk', KEEP, (cost) => cost.user)
      return user && (user * 1000) / results.files
    },
  },
  {
    name: "CPU (user + system) of first walk `keep` / kubelet's",
    ...{ goal: 1, must: 1.3 },
    measure: over(['first walk', KEEP], ['first walk', 'kubelet'], processor),
  },
  {
    name: '`init` / `node -e 0` of the same Node',
    goal: 1,
    must: 1.1,
    measure: over(['call', INIT], ['call', 'node -e 0']),
  },
  { name: 'repeated mount / `init`', goal: 1.25, must: 1.4, measure: over(['call', MOUNT], ['call', INIT]) },
  {
    name: "repeated mount / bash+jq driver's call",
    ...{ goal: 0.75, must: 1 },
    measure: over(['call', MOUNT], ['call', 'bash+jq, repeated mount']),
  },
  ...(['first walk', 'restore'] as const).map((walk) => ({
    name: `peak memory of a ${walk}, 1,000,000 files / 10,000 files`,
    ...{ goal: 1.2, must: 1.5 },
    measure: growth(walk),
    note: ({ most }: Results) => many(most),
  })),
  {
    name: 'system calls of a repeated mount, at 10 and at 1,000,000 files',
    ...{ goal: 'equal', must: 'equal' },
    measure: equal('manyFiles'),
    note: (results) => [calls(results), many(results.most)].filter((note) => note !== undefined).join(', '),
  },
  {
    name: 'system calls of a repeated mount, at 1 and at 5,000 other mounts',
    ...{ goal: 'equal', must: 'equal' },
    measure: equal('manyMounts'),
    note: calls,
  },
]

/** Who has to be measured for them. */
export const TARGET_PEERS: readonly string[] = [KEEP, GRANT, 'kubelet', 'find -printf']

export const TARGET_COLUMNS = ['', 'goal', 'must', 'measured', ''] as const

/** A row for each target: name, goal, must, what was measured, and whether that is enough. */
export function targetRows(results: Results): string[][] {
  return TARGETS.map((target) => {
    const { name, goal, must, note } = target
    const measured = target.measure(results)
    if (measured === undefined) return [name, ...[goal, must].map((bound) => shown(bound, target)), 'not measured', '']
    const noted = note?.(results)
    return [
      name,
      ...[goal, must, measured].map((value) => shown(value, target)),
      [verdict(target, measured), ...(noted ? [noted] : [])].join('; '),
    ]
  })
}

function shown(value: number | string | readonly string[], { unit = '' }: Target): string {
  if (typeof value === 'number') return `${value.toFixed(2)}${unit}`
  if (typeof value === 'string') return value
  return value.length === 0 ? 'equal' : `not equal (${value.join('; ')})`
}

function verdict({ goal, must }: Target, measured: number | readonly string[]): string {
  const within = (bound: number | 'equal') =>
    typeof measured === 'number' ? measured <= Number(bound) : measured.length === 0
  if (within(goal)) return 'goal met'
  return within(must) ? 'must met' : 'missed'
}
