import { sized } from '../helpers/size.ts'
import type { ActionName } from './actions.ts'
import type { FsType, StateDisk } from './power-node.ts'
import type { Combination } from './suite.ts'

const ACTIONS: readonly ActionName[] = [
  'walk',
  'grant',
  'idmap',
  'idmap with setGid',
  'apply',
  'restore',
  'restoreOnUnmount',
  'compaction',
]
const INSTALLS: readonly ActionName[] = ['first install', 'upgrade']
const RISKY_ACTIONS: readonly ActionName[] = ['walk', 'restore', 'restoreOnUnmount']

const MOMENTS = sized(7, 7, 30)
const RISKY_MOMENTS = sized(7, 7, 200)

/** With two disks no journal orders the writes. btrfs writes both trees of one disk at other times. */
function isRisky(fsType: FsType, stateDisk: StateDisk, action: ActionName): boolean {
  const isRiskyDisk = stateDisk === 'another disk' ? fsType === 'ext4' : fsType === 'btrfs'
  return isRiskyDisk && RISKY_ACTIONS.includes(action)
}

const SHORT: readonly Combination[] = [
  { fsType: 'ext4', stateDisk: 'another disk', action: 'restoreOnUnmount', moments: MOMENTS },
  { fsType: 'xfs', stateDisk: 'another disk', action: 'restore', moments: MOMENTS },
  { fsType: 'btrfs', stateDisk: 'the same disk', action: 'walk', moments: MOMENTS },
]

/** Returns the combinations of a file system that fit the size of the run: three, the riskiest in addition, or all. */
export function listCombinations(fsType: FsType): Combination[] {
  const combine = (stateDisk: StateDisk) => (action: ActionName) => {
    const moments = isRisky(fsType, stateDisk, action) ? RISKY_MOMENTS : MOMENTS
    return { fsType, stateDisk, action, moments }
  }
  const commit = (stateDisk: StateDisk) => (action: ActionName) => ({
    ...combine(stateDisk)(action),
    moments: MOMENTS,
    isCommitting: true,
  })
  const all = [
    ...ACTIONS.map(combine('another disk')),
    ...ACTIONS.map(combine('the same disk')),
    ...RISKY_ACTIONS.map(commit('another disk')),
    ...RISKY_ACTIONS.map(commit('the same disk')),
    commit('another disk')('grant'),
    ...INSTALLS.map(combine('the same disk')),
  ]
  const short = SHORT.filter((one) => one.fsType === fsType)
  const isShort = ({ stateDisk, action }: Combination) =>
    short.some((one) => one.stateDisk === stateDisk && one.action === action)
  const risky = RISKY_ACTIONS.flatMap((action) =>
    (['another disk', 'the same disk'] as const)
      .filter((stateDisk) => isRisky(fsType, stateDisk, action))
      .map((stateDisk) => combine(stateDisk)(action)),
  ).filter((one) => !isShort(one))
  return sized(short, [...short, ...risky], all)
}
