import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'
import { MODEKEEP } from './modekeep.ts'

const missing = isRoot ? (fs.existsSync(MODEKEEP) ? '' : 'run "npm run build"') : 'run "sudo npm test"'
const title = missing ? `commands without CAP_FSETID (skipped: ${missing})` : 'commands without CAP_FSETID'

describe.skipIf(missing)(title, () => {
  let stage: Stage
  let directory: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    directory = `${stage.top}/elsewhere/data`
    makeTree(fs, directory, ['dir sub 0750', 'file sub/tool 2755 1234'])
    const config = { stateDir: stage.config.stateDir, logFile: `${stage.top}/log`, allow: [] }
    fs.writeFileSync(`${stage.top}/config.json`, JSON.stringify(config))
  })
  afterEach(() => stage.close())

  const run = (program: string, ...args: string[]) => {
    const env = { MODEKEEP_CONFIG: `${stage.top}/config.json`, PATH: process.env.PATH }
    const { stdout, stderr, status, error } = spawnSync(program, args, { env, encoding: 'utf8', timeout: 600_000 })
    if (error) throw error
    return { stdout, stderr, status }
  }
  const without = (...args: string[]) =>
    run('setpriv', '--bounding-set', '-fsetid', '--inh-caps', '-fsetid', MODEKEEP, ...args)
  const found = () => ({ modes: modes(listTree(fs, directory)), groups: groups(listTree(fs, directory)) })

  it('an apply without CAP_FSETID fails and names the capability, as the kernel would omit set-gid silently', () => {
    const original = found()
    const said = without('apply', directory, '--fsgroup', '4242')
    expect(said.stdout + said.stderr).toMatch(/left set-gid out.*CAP_FSETID/)
    expect(said.status).toBe(1)
    expect(run(MODEKEEP, 'apply', directory, '--fsgroup', '4242')).toMatchObject({ status: 0 })
    expect(found()).toMatchObject({
      modes: { sub: '2750', 'sub/tool': '2755' },
      groups: { sub: 4242, 'sub/tool': 4242 },
    })
    expect(run(MODEKEEP, 'restore', directory)).toMatchObject({ status: 0 })
    expect(found()).toEqual(original)
  })

  it('an apply without CAP_FSETID fails even if only a set-gid bit is to be set', () => {
    for (const path of ['', '/sub', '/sub/tool']) fs.chownSync(`${directory}${path}`, 0, 4242)
    fs.chmodSync(directory, 0o2755)
    const said = without('apply', directory, '--fsgroup', '4242', '--fs-group-change-policy', 'Always')
    expect(said.stdout + said.stderr).toMatch(/left set-gid out.*CAP_FSETID/)
    expect(said.status).toBe(1)
  })

  it('a restore without CAP_FSETID fails and names the capability', () => {
    const original = found()
    expect(run(MODEKEEP, 'apply', directory, '--fsgroup', '4242')).toMatchObject({ status: 0 })
    const said = without('restore', directory)
    expect(said.stdout + said.stderr).toMatch(/left set-gid out.*CAP_FSETID/)
    expect(said.status).toBe(1)
    expect(run(MODEKEEP, 'restore', directory)).toMatchObject({ status: 0 })
    expect(found()).toEqual(original)
  })
})
