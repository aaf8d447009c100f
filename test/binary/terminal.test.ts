import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { helpText } from '../../src/operator/usage/help.ts'
import { cannotMountWith, titled } from '../helpers/needs.ts'
import { terminal } from '../helpers/terminal.ts'
import { MODEKEEP } from './modekeep.ts'

const WIDTHS = [60, 80, 200]
const cannot = fs.existsSync(MODEKEEP) ? cannotMountWith('tmux') : `there is no ${MODEKEEP}; run "npm run build"`

// A walk of about two seconds: progress begins after one.
const [DIRECTORIES, FILES] = [300, 1000]

describe.skipIf(cannot !== '')(titled('on a terminal', cannot), () => {
  let top: string
  const env = () => ({ MODEKEEP_CONFIG: `${top}/config.json` })
  beforeAll(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-seen-`)
    fs.writeFileSync(`${top}/config.json`, JSON.stringify({ stateDir: `${top}/state`, logFile: `${top}/log` }))
  })
  afterAll(() => fs.rmSync(top, { recursive: true }))

  it.each(WIDTHS)('of %i columns help is as wide as that', async (width) => {
    using shown = terminal(`${MODEKEEP} help gc`, width, env())
    const lines = helpText('gc', width).trimEnd().split('\n')
    expect(await shown.until((all) => all.includes('Examples:'))).toEqual(expect.arrayContaining(lines))
  })

  describe('a long walk', () => {
    beforeAll(() => {
      fs.mkdirSync(`${top}/many`)
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', `${top}/many`])
      for (let at = 0; at < DIRECTORIES; at++) fs.mkdirSync(`${top}/many/${at}`)
      const names = `seq 1 ${FILES} | xargs touch`
      execFileSync('sh', ['-c', `for directory in "$0"/*; do (cd "$directory" && ${names}); done`, `${top}/many`])
    })
    afterAll(() => execFileSync('umount', [`${top}/many`]))

    it.each([
      [60, /^apply \[#+-+] +\d+% +\d+k\/300k +[\d.]+k\/s +\d+s left$/],
      [80, /^apply \[#+-+] +\d+% +[\d,]+ of 300,301 +[\d,]+\/s +\d+ s left$/],
      [200, /^apply \[#+-{10,}] +\d+% +[\d,]+ of 300,301 +[\d,]+ changed +[\d,]+\/s +\d+ s left$/],
    ])('shows bar, count, rate and remaining time in %i columns, on one line', async (width, line) => {
      const command = `${MODEKEEP} apply ${top}/many --fsgroup ${2000 + width}`
      using shown = terminal(`${command} || echo failed`, width, env())
      const lines = await shown.until((all) => all.some((text) => line.test(text)) || all.length > 1)
      expect(lines).toEqual([expect.stringMatching(line)])
      // Nothing of it is left behind.
      const end = await shown.until((all) => all.some((text) => /looked at/.test(text)))
      expect(end.filter((text) => text.includes('['))).toEqual([])
    })
  })
})
