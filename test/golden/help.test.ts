import * as fs from 'node:fs'
import { describe, it } from 'vitest'
import { MODEKEEP, run } from '../binary/modekeep.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { expectGolden } from './golden.ts'

const cannot = fs.existsSync(MODEKEEP) ? '' : 'run "npm run build"'

describe.skipIf(cannot !== '')(addSkipReason('the golden file', cannot), () => {
  it('help.txt has the help of modekeep and of each verb', () => {
    const overview = run(['help']).text
    const verbs = [...overview.matchAll(/^ {2}modekeep ([a-z-]+)/gm)].map(([, verb = '']) => verb)
    const texts = [...new Set(verbs)].map((verb) => `$ modekeep help ${verb}\n${run(['help', verb]).text}`)
    expectGolden('help.txt', [`$ modekeep help\n${overview}`, ...texts].join('\n'))
  })

  it.each(['bash', 'zsh', 'fish'])('completion.%s has the completion script of that shell', (shell) => {
    expectGolden(`completion.${shell}`, run(['completion', shell]).text)
  })

  it('arguments.txt has the messages about wrong arguments', () => {
    const wrong = [
      ['pln'],
      ['plan'],
      ['plan', '/srv', '--fsgroup'],
      ['plan', '/srv', '--fsgroup', 'x'],
      ['apply', '/srv', '/mnt', '--fsgroup', '2000'],
      ['restore', '--forced'],
      ['restore', '/srv', '--json=yes'],
      ['journal', 'move', '/srv'],
      ['status', '--unknown'],
      ['logs', '--lines', '-1'],
      ['gc', '--forget'],
      ['migrate'],
      ['completion', 'ksh'],
      ['explain', 'group-conflct'],
      ['explain', 'zzz'],
      ['csi', '--kubelet-dir', 'relative'],
      ['nri', '--unknown'],
      ['device-plugin', '--devices', '0'],
    ]
    const texts = wrong.map((args) => {
      const { text, code } = run(args)
      return `$ modekeep ${args.join(' ')}\n${text}exit status ${code}\n`
    })
    expectGolden('arguments.txt', texts.join('\n'))
  })
})
