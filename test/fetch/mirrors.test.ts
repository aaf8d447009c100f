import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { parseDebianMirrors } from '../../scripts/fetch/mirrors.ts'

const line = (top: string, suite: string) =>
  `'${top}/dists/${suite}/InRelease' list 0 \n'${top}/dists/${suite}/main/binary-amd64/Packages.xz' list 0 `

it('each Debian mirror is used once, security archives for their own packages alone; other sources and discs are not used', () => {
  const printed = [
    line('http://mirror.example/debian', 'bookworm'),
    line('http://mirror.example/debian', 'bookworm-updates'),
    line('http://mirror.example/debian-security', 'bookworm-security'),
    line('https://example.org/packages', 'stable'),
    line('cdrom://Debian', 'bookworm'),
    line('file:/srv/debian', 'bookworm'),
  ]
  expect(parseDebianMirrors(printed.join('\n'))).toEqual(['http://mirror.example/debian', 'file:/srv/debian'])
  expect(parseDebianMirrors(printed.join('\n'), 'security')).toEqual(['http://mirror.example/debian-security'])
})

it('the mirrors in a mirror list file are used, as in cloud images', () => {
  const directory = fs.mkdtempSync(join(tmpdir(), 'modekeep-mirrors-'))
  onTestFinished(() => fs.rmSync(directory, { recursive: true }))
  const list = '# near\nhttps://near.example/debian/\tpriority:1\n\nhttps://far.example/debian\n'
  fs.writeFileSync(join(directory, 'debian.list'), list)
  const printed = line(`mirror+file:${directory}/debian.list`, 'trixie')
  expect(parseDebianMirrors(printed)).toEqual(['https://near.example/debian', 'https://far.example/debian'])
})
