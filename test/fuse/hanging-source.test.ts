import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import type { DoctorDocument } from '../../src/cli/commands/doctor.ts'
import type { HealDocument } from '../../src/cli/commands/heal.ts'
import type { StatusDocument } from '../../src/cli/commands/status-document.ts'
import { findProcessesWith } from '../helper/fake-programs.ts'
import { cannotServe, FuseNode } from '../helpers/fuse-node.ts'
import { requireProgram } from '../helpers/needs.ts'

const cannot = cannotServe('bindfs')

it.skipIf(cannot !== '')(
  `status, doctor and heal report a hanging daemon or server of a source without delay${cannot && ` (skipped: ${cannot})`}`,
  async () => {
    const node = new FuseNode([])
    const [real, served] = [`${node.top}/real`, `${node.volumes}/served`]
    for (const directory of [`${real}/data`, served, `${node.volumes}/local`])
      fs.mkdirSync(directory, { recursive: true })
    execFileSync(requireProgram('bindfs'), ['-o', 'attr_timeout=0,entry_timeout=0', real, served])
    const server = Number(findProcessesWith(`${real}\0${served}\0`)[0])
    onTestFinished(() => void process.kill(server, 'SIGKILL'))
    await node.mount('a', { source: `${served}/data` })
    await node.mount('b', { source: `${served}/data` })
    await node.mount('c', { source: `${node.volumes}/local` })
    process.kill(server, 'SIGSTOP')

    const reason = 'health unknown: the server of its source does not respond'
    const silent = { state: 'unknown', reason }
    const { mounts } = node.byHand<StatusDocument>('status')
    expect(mounts).toMatchObject([silent, silent, { state: 'healthy', reason: '' }])
    const outcomes = () => node.byHand<HealDocument>('heal').mounts.map(({ state }) => state)
    // The others are repaired all the same.
    execFileSync('umount', [node.podDirectory('c')])
    expect(outcomes()).toEqual(['unknown', 'unknown', 'missing'])
    const { findings } = node.byHand<DoctorDocument>('doctor')
    expect(findings.filter(({ text }) => text.endsWith(reason)).map(({ level }) => level)).toEqual([
      'warning',
      'warning',
    ])

    process.kill(server, 'SIGCONT')
    expect(outcomes()).toEqual(['healthy', 'healthy', 'healthy'])
  },
)
