import type { CheckFinding, DoctorDocument } from '../doctor/index.ts'
import type { Line } from '../output/output.ts'
import { readPathOption } from './operands.ts'
import type { DocumentVerb } from './verb.ts'

export interface DoctorCommand {
  verb: 'doctor'
  /** A configuration to check instead of the node's. */
  config: string | undefined
}

export const doctorVerb: DocumentVerb<DoctorCommand, DoctorDocument> = {
  summary: 'check the node: kernel, helpers, kubelet, permissions, records',
  text: [
    "Checks what modekeep needs on this node: the kernel's features, modekeep's system calls compared with Node's, " +
      "helper programs, kubelet's plugin directory and the driver in it, the configuration with each of its rules in a sentence, owners and permissions, " +
      'free space, records without mounts, mounts without records, and what interrupted calls left.',
    'Each system call is really made, on nothing of the node. Each finding says what to do. Changes nothing.',
  ],
  options: { config: "check this file in place of the node's configuration, before it is installed" },
  examples: ['modekeep doctor --config new-config.json', 'modekeep doctor || echo "this node needs a look"'],
  failure: 'there is a fault (a warning alone is no failure)',
  isLooking: true,
  read: (args) => ({ verb: 'doctor', config: readPathOption('config', args) }),
  /** Formats findings by area, each with its remedy below. */
  lines({ findings, ok, warnings, faults }) {
    const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
    return [
      ...Map.groupBy(findings, ({ area }) => area)
        .entries()
        .flatMap(([area, found]): Line[] => [{ text: area, style: 'strong' }, ...found.flatMap(formatFinding)]),
      '',
      { text: `${ok} ok, ${counted(warnings, 'warning')}, ${counted(faults, 'fault')}`, style: 'strong' },
    ]
  },
  trouble: 'this node has faults: what to do is above',
  hasTrouble: ({ faults }) => faults > 0,
}

function formatFinding({ level, text, remedy }: CheckFinding): Line[] {
  const line = `  ${level.padEnd(7)}  ${text}`
  const styled: Line = level === 'ok' ? line : { text: line, style: level === 'fault' ? 'fault' : 'notice' }
  return remedy === '' ? [styled] : [styled, `           do: ${remedy}`]
}
