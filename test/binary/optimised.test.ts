import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { BINARY } from '../helpers/node-directory.ts'
import { sized } from '../helpers/size.ts'

const isRoot = process.getuid?.() === 0
const title = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

const FILES = 9000
const ROUNDS = sized(3, 6, 60)

// With V8's quick calls every fifth of these restores ended the process: they were optimised while it ran.
it.skipIf(!isRoot)(`restores of interrupted walks complete one after another${title}`, () => {
  const node = new BinaryNode()
  const source = `${node.volumes}/many`
  fs.mkdirSync(source)
  for (let n = 0; n < FILES; n++) fs.writeFileSync(`${source}/${n}`, '')
  const env = { MODEKEEP_CONFIG: `${node.top}/config.json` }
  const call = (args: string[], timeout?: number) => {
    const { stdout, stderr, status, signal } = spawnSync(BINARY, args, { env, encoding: 'utf8', timeout })
    return { stdout, stderr, status, signal }
  }
  for (let round = 0; round < ROUNDS; round++) {
    // The first is whole, so that there is something to restore; the others go however far they come.
    call(['apply', source, '--fsgroup', '2000'], round === 0 ? undefined : 300 + 100 * round)
    const said = call(['restore', source])
    expect(said).toMatchObject({ status: 0, signal: null, stderr: '' })
  }
  expect(fs.readdirSync(source).filter((name) => fs.statSync(`${source}/${name}`).gid !== 0)).toEqual([])
})
