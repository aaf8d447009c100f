import { expect, it } from 'vitest'
import { type DoctorDocument, doctorVerb } from '../../../src/cli/commands/doctor.ts'
import { formatOutputLines } from '../../../src/cli/output/output.ts'

const DOCUMENT: DoctorDocument = {
  verb: 'doctor',
  ok: 2,
  warnings: 1,
  faults: 0,
  findings: [
    { area: 'kernel', level: 'ok', text: 'all there', remedy: '' },
    { area: 'state', level: 'warning', text: 'little room', remedy: 'make room' },
    { area: 'kernel', level: 'ok', text: 'more', remedy: '' },
  ],
}

it('doctor prints findings by area, each with its remedy below', () => {
  expect(formatOutputLines(doctorVerb.lines(DOCUMENT), false)).toBe(
    'kernel\n  ok       all there\n  ok       more\nstate\n  warning  little room\n           do: make room\n\n2 ok, 1 warning, 0 faults\n',
  )
  expect(doctorVerb.hasTrouble?.(DOCUMENT)).toBe(false)
  expect(doctorVerb.hasTrouble?.({ ...DOCUMENT, faults: 1 })).toBe(true)
})
