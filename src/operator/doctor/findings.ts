import type { CheckFinding } from '../actions/document.ts'

type Area = CheckFinding['area']

/** Findings of one area. */
export function findingsOf(area: Area) {
  return {
    ok: (text: string): CheckFinding => ({ area, level: 'ok', text, remedy: '' }),
    warning: (text: string, remedy: string): CheckFinding => ({ area, level: 'warning', text, remedy }),
    fault: (text: string, remedy: string): CheckFinding => ({ area, level: 'fault', text, remedy }),
  }
}
