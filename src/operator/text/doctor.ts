import type { CheckFinding, DoctorDocument } from '../doctor/findings.ts'
import type { Line } from './line.ts'

const STYLES = { ok: undefined, warning: 'notice', fault: 'fault' } as const

/** `doctor` for people: by area, each finding with its remedy below it. */
export function doctorLines({ findings, ok, warnings, faults }: DoctorDocument): Line[] {
  const areas = [...Map.groupBy(findings, ({ area }) => area)]
  return [
    ...areas.flatMap(([area, found]) => [{ text: area, style: 'strong' } as const, ...found.flatMap(lines)]),
    { text: '' },
    { text: `${ok} ok, ${counted(warnings, 'warning')}, ${counted(faults, 'fault')}`, style: 'strong' },
  ]
}

function lines({ level, text, remedy }: CheckFinding): Line[] {
  const style = STYLES[level]
  const line: Line = { text: `  ${level.padEnd(7)}  ${text}`, ...(style && { style }) }
  return remedy === '' ? [line] : [line, { text: `           do: ${remedy}` }]
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
