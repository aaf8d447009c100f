import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addSkipReason, cannotMountWith, isInstalled } from '../helpers/needs.ts'
import { MODEKEEP } from './modekeep.ts'

const cannot = fs.existsSync(MODEKEEP) ? cannotMountWith() : `there is no ${MODEKEEP}; run "npm run build"`

describe.skipIf(cannot !== '')(addSkipReason('shell completion of recorded names', cannot), () => {
  let top: string
  let mountPoint: string
  let volume: string
  const call = (program: string, ...args: string[]) => {
    const env = { MODEKEEP_CONFIG: `${top}/config.json`, PATH: `${top}/bin:${process.env.PATH}`, TERM: 'xterm' }
    return execFileSync(program, args, { encoding: 'utf8', cwd: `${top}/empty`, env, timeout: 60_000 })
  }
  const offered = (kind: string) => call(MODEKEEP, 'completion', '--offer', kind)
  beforeAll(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-offer-`)
    mountPoint = `${top}/pods/1/volumes/modekeep~fs/v`
    for (const name of ['bin', 'empty', 'data', mountPoint.slice(top.length + 1)]) {
      fs.mkdirSync(`${top}/${name}`, { recursive: true })
    }
    fs.symlinkSync(MODEKEEP, `${top}/bin/modekeep`)
    const config = { stateDir: `${top}/state`, logFile: `${top}/log`, allow: [{ sources: [`${top}/data`] }] }
    fs.writeFileSync(`${top}/config.json`, JSON.stringify(config))
    const options = {
      source: `${top}/data`,
      ownership: 'walk',
      'kubernetes.io/fsGroup': '2000',
      'kubernetes.io/pod.name': 'cart-0',
      'kubernetes.io/pod.namespace': 'shop',
    }
    expect(call(MODEKEEP, 'mount', mountPoint, JSON.stringify(options))).toContain('Success')
    volume = offered('volumes').trim()
  })
  afterAll(() => {
    call(MODEKEEP, 'unmount', mountPoint)
    fs.rmSync(top, { recursive: true })
  })

  it('the source of shell completion lists volumes, pods, namespaces and mounts, one on each line', () => {
    expect(volume).toMatch(/^[0-9a-f.]+-[0-9a-f]+-[0-9a-f]+$/)
    expect(['namespaces', 'pods', 'mounts'].map(offered)).toEqual(['shop\n', 'shop/cart-0\n', `${mountPoint}\n`])
  })

  const shells: Record<string, (line: string) => string[]> = {
    bash(line) {
      const script = `source <(modekeep completion bash)
        COMP_WORDS=($1 "$2") COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)) COMP_TYPE=9
        _modekeep; printf '%s\\n' "\${COMPREPLY[@]}"`
      const words = line.split(' ')
      return call('bash', '--norc', '-c', script, 'bash', words.slice(0, -1).join(' '), words.at(-1) ?? '').split('\n')
    },
    fish(line) {
      const script = 'modekeep completion fish | source; complete -C "$argv[1]"'
      return call('fish', '--no-config', '-c', script, line)
        .split('\n')
        .map((text) => text.replace(/\t.*/, ''))
    },
  }

  describe.each(Object.keys(shells).filter((shell) => isInstalled(shell)))('%s', (shell) => {
    it('shell completion offers volumes for restore, journal export and gc', () => {
      for (const line of ['restore', 'journal export', 'gc --forget']) {
        expect(shells[shell]?.(`modekeep ${line} ${volume.slice(0, 4)}`)).toContain(volume)
      }
    })

    it('shell completion offers pods, mounts and volumes for status, and pods for logs', () => {
      const begun = { [volume]: volume.slice(0, 4), 'shop/cart-0': 'sho', [mountPoint]: mountPoint.slice(0, -20) }
      for (const [name, word] of Object.entries(begun)) {
        expect(shells[shell]?.(`modekeep status ${word}`)).toContain(name)
      }
      expect(shells[shell]?.('modekeep logs --pod sho')).toContain('shop/cart-0')
      expect(shells[shell]?.('modekeep status --namespace sh')).toContain('shop')
    })
  })
})
