import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { createControlGroupArguments, prepareNodeControlGroups } from '../../src/kernel/linux/helpers.ts'

let top: string

beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-groups-'))
  return () => fs.rmSync(top, { recursive: true })
})

describe("the node's control groups", () => {
  it("are the root group of each cgroup v1 hierarchy, and a group of modekeep's own in cgroup v2", () => {
    const ofContainer = `${top}-container`
    const mounts = [
      '29 24 0:26 / /sys rw - sysfs sysfs rw',
      `30 24 0:27 / ${top}/memory rw,nosuid shared:9 - cgroup cgroup rw,memory`,
      `31 24 0:28 /../.. ${top}/unified rw - cgroup2 cgroup2 rw`,
      `32 24 0:28 /pod ${ofContainer}/unified rw - cgroup2 cgroup2 rw`,
      '',
    ]
    expect(prepareNodeControlGroups(mounts.join('\n'), top)).toEqual([
      `${top}/memory/cgroup.procs`,
      `${top}/unified/modekeep-fuse/cgroup.procs`,
    ])
    expect(fs.readdirSync(`${top}/unified`)).toEqual(['modekeep-fuse'])
    expect(fs.existsSync(ofContainer)).toBe(false)
  })

  it('are entered before the command starts, with its arguments unchanged', () => {
    const files = ['one', 'two'].map((name) => `${top}/${name}`)
    const words = createControlGroupArguments(files, ['/bin/sh', '-c', 'echo $$ "$@"', 'sh', '--', 'a  b', '$HOME'])
    const { stdout } = spawnSync('/bin/sh', words, { encoding: 'utf8' })
    const pid = stdout.split(' ')[0]
    expect(stdout).toBe(`${pid} -- a  b $HOME\n`)
    expect(files.map((file) => fs.readFileSync(file, 'utf8'))).toEqual([`${pid}\n`, `${pid}\n`])
  })

  it('keep the command from starting if they cannot be entered', () => {
    expect(spawnSync('/bin/sh', createControlGroupArguments([`${top}/none/cgroup.procs`], ['/bin/true'])).status).toBe(
      1,
    )
  })
})
