import { isUnwell } from '../../heal/state.ts'
import type { Host } from '../../host/host.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { type StatusDocument, status } from './status.ts'

interface SummaryContext {
  isRoot: boolean
  host: Host
  isolatesWalks?: true | undefined
  readConfig(): Promise<{ config: NodeConfig; faults: readonly string[] }>
}

/** Summarizes the mounts of this node in one line for the overview. Commands report the details of problems. */
export async function summarizeMounts({ isRoot, host, isolatesWalks, readConfig }: SummaryContext): Promise<string> {
  if (!isRoot) return 'as root this says what is mounted on this node'
  const { config, faults } = await readConfig()
  if (faults.length > 0) return 'the configuration is not valid: "modekeep doctor" says what to do'
  return formatMountSummary(
    await status({ host, config, isolatesWalks, note: () => {}, warn: () => {}, progress: () => {} }),
  )
}

function formatMountSummary({ mounts, unrecorded, unreadable }: StatusDocument): string {
  const unhealthy = mounts.map(({ state }) => state).filter(isUnwell)
  const problems = [...unhealthy, ...unrecorded.map(() => 'without a record'), ...unreadable.map(() => 'unreadable')]
  const total = mounts.length + unrecorded.length + unreadable.length
  if (total === 0) return 'none on this node'
  const counted = [...Map.groupBy(problems, (state) => state)].map(([state, of]) => `${of.length} ${state}`)
  return `${total} on this node, ${problems.length === 0 ? 'all healthy' : `${counted.join(', ')}: see "modekeep status"`}`
}
