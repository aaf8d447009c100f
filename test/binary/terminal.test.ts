import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatHelp } from '../../src/cli/usage/help.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { openTerminal } from '../helpers/terminal.ts'
import { MODEKEEP } from './modekeep.ts'

const WIDTHS = [60, 80, 200]
const cannot = fs.existsSync(MODEKEEP) ? cannotMountWith('tmux') : `there is no ${MODEKEEP}; run "npm run build"`

// A walk of about two seconds: progress begins after one.
const [DIRECTORIES, FILES] = [300, 1000]

describe.skipIf(cannot !== '')(addSkipReason('the executable on a terminal', cannot), () => {
  let top: string
  const env = () => ({ MODEKEEP_CONFIG: `${top}/config.json` })
  beforeAll(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-seen-`)
    fs.writeFileSync(`${top}/config.json`, JSON.stringify({ stateDir: `${top}/state`, logFile: `${top}/log` }))
  })
  afterAll(() => fs.rmSync(top, { recursive: true }))

  it.each(WIDTHS)('help on a terminal of %i columns has lines of that width', async (width) => {
    using shown = openTerminal(`${MODEKEEP} help gc`, width, env())
    const lines = formatHelp('gc', width).trimEnd().split('\n')
    expect(await shown.until((all) => all.includes('Examples:'))).toEqual(expect.arrayContaining(lines))
  })

  describe('status', () => {
    const call = (...args: string[]) => execFileSync(MODEKEEP, args, { encoding: 'utf8', env: env() })
    const names = ['a-volume-with-a-long-name-of-which-a-part-is-shown', 'other']
    beforeAll(() => {
      for (const name of names) {
        fs.mkdirSync(`${top}/volumes/${name}`, { recursive: true })
        call('apply', `${top}/volumes/${name}`, '--fsgroup', '2000')
      }
    })

    it.each(WIDTHS)('fits %i columns, and its shortened names are accepted by commands', async (width) => {
      using shown = openTerminal(`${MODEKEEP} status`, width, env())
      const lines = await shown.until((all) => all.some((line) => line.includes('walked')))
      expect(lines.filter((line) => line.length > width)).toEqual([])
      const [volume = ''] = lines.find((line) => /walked/.test(line))?.split(' ') ?? []
      expect(call('status', volume, '-o', 'name')).toMatch(/^[0-9a-f.]+-[0-9a-f]+-[0-9a-f]+\n$/)
      expect(call('restore', volume, '--dry-run')).toContain(`${top}/volumes/`)
    })

    it('with --watch shows changes in place until Ctrl-C', async () => {
      using shown = openTerminal(`trap : INT; ${MODEKEEP} status --watch; echo ended $?`, 80, env())
      const before = await shown.until((all) => all.some((line) => line.includes('walked')))
      expect(before.filter((line) => /^volume /.test(line))).toHaveLength(1)
      call('restore', `${top}/volumes/other`)
      const after = await shown.until((all) => all.filter((line) => line.includes('walked')).length === 1)
      expect(after.filter((line) => /^volume /.test(line))).toHaveLength(1)
      shown.type('C-c')
      await shown.until((all) => all.some((line) => /^(\^C)?ended 130$/.test(line)))
    })

    it('with --watch prints a document for each change if stdout is no terminal', async () => {
      const command = `${MODEKEEP} status --watch -o json | head -n 1 | cut -c 1-45; echo ended`
      using shown = openTerminal(command, 80, env())
      const lines = await shown.until((all) => all.length > 0)
      expect(lines).toContain('{"apiVersion":"modekeep/v1","kind":"Status","')
    })
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
    ])('shows a progress bar with count, rate and remaining time on one line of %i columns', async (width, line) => {
      const command = `${MODEKEEP} apply ${top}/many --fsgroup ${2000 + width}`
      using shown = openTerminal(`${command} || echo failed`, width, env())
      const lines = await shown.until((all) => all.some((text) => line.test(text)) || all.length > 1)
      expect(lines).toEqual([expect.stringMatching(line)])
      // Nothing of it is left behind.
      const end = await shown.until((all) => all.some((text) => /looked at/.test(text)))
      expect(end.filter((text) => text.includes('['))).toEqual([])
    })
  })
})
