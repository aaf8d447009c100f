import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createSessionPicture, SESSION_PICTURE_FILE } from '../../scripts/docs/picture.ts'
import { createTerminalPicture } from '../../scripts/docs/terminal.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'

const cannot = cannotMountWith()

describe.skipIf(cannot !== '')(addSkipReason("the README's picture", cannot), () => {
  it('the README\'s picture equals the current output of the session, as "sudo npm run docs" draws it', () => {
    expect(fs.readFileSync(SESSION_PICTURE_FILE, 'utf8')).toBe(createSessionPicture())
  })
})

describe('the terminal picture', () => {
  it('shows commands, coloured text, and characters that XML escapes', () => {
    const picture = createTerminalPicture(
      'two < three',
      '# ls <a>\r\n\u001b[1mbold\u001b[22m plain \u001b[31mred\u001b[0m &\r\n',
      40,
    )
    expect(picture).toContain('<title>two &lt; three</title>')
    expect(picture).toContain('<tspan class="dim"># </tspan><tspan class="typed">ls &lt;a&gt;</tspan>')
    expect(picture).toContain('<tspan class="bold">bold</tspan> plain <tspan class="red">red</tspan> &amp;</text>')
  })

  it.each([
    ['a line that is wider than the terminal', 'a'.repeat(41)],
    ['a cursor movement', '\u001b[2K'],
    ['a text style that modekeep does not use', '\u001b[5mblinks'],
  ])('refuses %s', (_, text) => {
    expect(() => createTerminalPicture('', text, 40)).toThrow()
  })
})
