import type { Line } from './line.ts'
import { printable } from './printable.ts'

const STYLES = { strong: '1', notice: '33', fault: '31' } as const

/** The lines as one text: no file name can drive the terminal, only `colour` brings escape sequences. */
export function render(lines: readonly Line[], colour: boolean): string {
  return lines
    .map(({ text, style }) => {
      const safe = printable(text)
      return colour && style && safe ? `\x1b[${STYLES[style]}m${safe}\x1b[0m\n` : `${safe}\n`
    })
    .join('')
}
