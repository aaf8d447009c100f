import { expect, it } from 'vitest'
import { sourceLines, sourceStanzas } from '../../bench/peers/debian-source.ts'

it("Debian's lines become source lines with their options, others' and comments are left out", () => {
  const list = [
    '# deb http://mirror.example/debian sid main',
    'deb [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example/debian bookworm main',
    'deb-src http://mirror.example/debian bookworm main',
    'deb https://example.org/packages stable main',
  ].join('\n')
  expect(sourceLines(list)).toBe(
    'deb-src [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example/debian bookworm main\n',
  )
})

it("so do Debian's stanzas", () => {
  const debian =
    'Types: deb deb-src\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\nComponents: main'
  const other = 'Types: deb\nURIs: https://example.org/packages\nSuites: stable\nComponents: main'
  expect(sourceStanzas(`${debian}\n\n${other}\n`)).toBe(`${debian.replace('deb deb-src', 'deb-src')}\n`)
})
