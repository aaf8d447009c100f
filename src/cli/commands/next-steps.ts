import type { MountState } from '../../heal/state.ts'
import { explainUnrestored } from '../../store/volume-record.ts'
import { type Line, quoteForShell } from '../output/output.ts'
import type { MountStatus, StatusDocument, VolumeStatus } from './status-document.ts'

/** The kind of next step for a mount, by its state; undefined: none. */
const STEP_BY_STATE: Readonly<Record<MountState, string | undefined>> = {
  healthy: undefined,
  'in progress': undefined,
  busy: 'process',
  missing: 'heal',
  stale: 'heal',
  interrupted: 'heal',
  orphaned: 'heal',
  changed: 'command',
  partial: 'command',
  unknown: 'person',
}

/** Formats the next steps, most urgent first; none if all mounts and volumes are well. */
export function formatNextSteps({ mounts, volumes, containers, unrecorded, unreadable }: StatusDocument): Line[] {
  const by = (step: string) => mounts.filter(({ state }) => STEP_BY_STATE[state] === step)
  const heals = by('heal').filter(canRepair)
  const failing = by('heal').filter((mount) => !canRepair(mount))
  const people = by('person')
  const commands = [...by('command'), ...volumes.filter(({ changed }) => changed !== null)]
  const isUnreadable = unreadable.length > 0 || containers.some(({ state }) => state === 'unreadable')
  const isBroken = isUnreadable || volumes.some(({ fault }) => fault !== null)
  const steps = [
    ...includeIfAny(
      heals,
      `"modekeep heal" repairs what is ${listStates(heals)}; with --dry-run it says what it would do`,
    ),
    ...includeIfAny(
      failing,
      `heal cannot repair what is ${listStates(failing)} here: the line below each such mount says why and what to do`,
    ),
    ...includeIfAny(
      commands,
      'the line below each mount or volume that is changed or partial names the command that gives it its group again',
    ),
    ...includeIfAny(
      by('process'),
      'the line below each busy mount names the processes to end before another node mounts its disk or image',
    ),
    ...includeIfAny(
      [...people, ...unrecorded],
      'heal leaves what is unknown or without a record: the reason beside it says what to do',
    ),
    ...(isBroken ? ['"modekeep doctor" says what to do about the records that cannot be used'] : []),
    ...volumes.flatMap(formatVolumeSteps),
    ...formatUnenforcedSteps(mounts),
  ]
  if (steps.length === 0) return []
  return ['', { text: 'next', style: 'strong' }, ...steps.map((text): Line => ({ text: `  ${text}`, style: 'notice' }))]
}

const canRepair = ({ repair }: MountStatus): boolean => repair !== 'failed' && repair !== 'none'

const includeIfAny = (of: readonly unknown[], step: string) => (of.length > 0 ? [step] : [])

function listStates(mounts: readonly MountStatus[]): string {
  return [...new Set(mounts.map(({ state }) => state))].join(', ')
}

function formatVolumeSteps(about: VolumeStatus): string[] {
  const { volume, source, complete, left } = about
  if (about.walk !== null || about.fault !== null || about.group === null) return []
  const restore = `"modekeep restore ${quoteForShell(volume)}"`
  if (about.restorePending && about.mounts === 0)
    return [`${restore} puts the volume back, which its last unmount could not`]
  const kept = left === null ? undefined : explainUnrestored({ volume, left })
  if (kept !== undefined) return [`${source}: ${kept}`]
  if (complete || left !== null) return []
  return [
    `${restore} puts back the volume of an interrupted walk; its next mount, or "modekeep apply", goes on with it`,
  ]
}

function formatUnenforcedSteps(mounts: readonly MountStatus[]): string[] {
  const options = [...new Set(mounts.flatMap(({ unenforced }) => unenforced))]
  if (options.length === 0) return []
  return [
    `containers on runc 1.2 or newer do not have ${options.join(', ')} of their volumes: start "modekeep nri", or give the pods "hostUsers: false" (docs/mounts.md)`,
  ]
}
