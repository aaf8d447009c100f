import { formatError } from '../../errors/refusal.ts'
import type { NodeDiagnosis } from '../../kernel/linux/diagnosis.ts'
import type { Session } from '../../state/session.ts'
import { type ConfigurationFile, checkConfiguration } from '../doctor/configuration.ts'
import { type CheckResult, createFaultResult } from '../doctor/findings.ts'
import {
  checkContainerMountOptions,
  checkContainerRuntime,
  checkFuseDevice,
  checkHelperPrograms,
  checkKernel,
  checkKubelets,
  checkSystemCalls,
} from '../doctor/node.ts'
import { checkFreeSpace, checkPathPermissions } from '../doctor/paths.ts'
import {
  checkContainerRecords,
  checkHiddenMounts,
  checkRecordedMounts,
  checkRecordedVolumes,
  checkRootSetGidBits,
  checkTmpfsMemory,
} from '../doctor/records.ts'
import { type ExecutableVersions, reportVersions } from '../doctor/versions.ts'
import type { OutputLine } from '../output/output.ts'
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
        .flatMap(([area, found]): OutputLine[] => [
          { text: area, style: 'strong' },
          ...found.flatMap(formatDoctorFinding),
        ]),
      '',
      { text: `${ok} ok, ${counted(warnings, 'warning')}, ${counted(faults, 'fault')}`, style: 'strong' },
    ]
  },
  trouble: 'this node has faults: what to do is above',
  hasTrouble: ({ faults }) => faults > 0,
}

function formatDoctorFinding({ level, text, remedy }: DoctorFinding): OutputLine[] {
  const line = `  ${level.padEnd(7)}  ${text}`
  const styled: OutputLine = level === 'ok' ? line : { text: line, style: level === 'fault' ? 'fault' : 'notice' }
  return remedy === '' ? [styled] : [styled, `           do: ${remedy}`]
}

/** Input of doctor in addition to the session. */
export interface DoctorContext {
  diagnosis: NodeDiagnosis
  configuration: ConfigurationFile
  /** This program's own file; undefined if it runs from its sources. */
  executable: string | undefined
  versions: ExecutableVersions
}

/** Every check, by the area under which doctor reports it. */
const DOCTOR_CHECKS = {
  modekeep: [({ versions }) => reportVersions(versions)],
  kernel: [({ diagnosis }) => checkKernel(diagnosis.features(), diagnosis.release())],
  'system calls': [({ diagnosis }) => checkSystemCalls(diagnosis.selfTest())],
  helpers: [({ diagnosis }, { config }) => checkHelperPrograms(diagnosis, config)],
  kubelet: [
    ({ diagnosis, executable }, { host }) => checkKubelets(host, diagnosis, executable),
    (_, { host }) => checkFuseDevice(host),
  ],
  runtime: [
    ({ diagnosis }, session) => checkContainerRuntime(session, diagnosis),
    (_, session) => checkContainerMountOptions(session),
  ],
  configuration: [({ configuration }, session) => checkConfiguration(session, configuration)],
  state: [
    ({ configuration }, { host, config }) => checkPathPermissions(host, config, configuration.file),
    ({ diagnosis }, { host, config }) => checkFreeSpace(host, diagnosis, config.stateDir),
  ],
  mounts: [checkRecordedMounts, checkHiddenMounts, checkTmpfsMemory, checkContainerRecords, checkRootSetGidBits].map(
    (check): DoctorCheck =>
      (_, session) =>
        check(session),
  ),
  volumes: [(_, session) => checkRecordedVolumes(session)],
} satisfies Readonly<Record<string, readonly DoctorCheck[]>>

type DoctorCheck = (context: DoctorContext, session: Session) => Iterable<CheckResult> | AsyncIterable<CheckResult>

export interface DoctorFinding extends CheckResult {
  area: keyof typeof DOCTOR_CHECKS
}

export interface DoctorDocument {
  verb: 'doctor'
  /** Number of findings of each level. */
  ok: number
  warnings: number
  faults: number
  findings: DoctorFinding[]
}

/** Checks the node without changes. A check that throws becomes a fault, and the other checks continue. */
export async function runDoctor(session: Session, context: DoctorContext): Promise<DoctorDocument> {
  const findings: DoctorFinding[] = []
  for (const [area, checks] of Object.entries(DOCTOR_CHECKS) as [DoctorFinding['area'], readonly DoctorCheck[]][]) {
    for (const check of checks) {
      try {
        for await (const result of check(context, session)) findings.push({ area, ...result })
      } catch (error) {
        const text = `this could not be checked: ${formatError(error)}`
        findings.push({ area, ...createFaultResult(text, 'remove the cause and run doctor again') })
      }
    }
  }
  const count = (level: DoctorFinding['level']) => findings.filter((finding) => finding.level === level).length
  return { verb: 'doctor', ok: count('ok'), warnings: count('warning'), faults: count('fault'), findings }
}
