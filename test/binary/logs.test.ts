import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'

const title = `logs${isRoot ? '' : ' (skipped: operator verbs need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  const logs = (node: BinaryNode, ...args: string[]) =>
    execFileSync(BINARY, ['logs', ...args], {
      env: { MODEKEEP_CONFIG: `${node.top}/config.json` },
      encoding: 'utf8',
      stdio: 'pipe',
    })

  it('shows what was rotated away while nothing has been logged since', () => {
    const node = new BinaryNode()
    expect(() => logs(node)).toThrow('there is no log')
    fs.mkdirSync(dirname(node.log))
    fs.writeFileSync(`${node.log}.1`, '{"verb":"mount","outcome":"Success"}\n')
    expect(logs(node)).toMatch(/^\s+mount\s+Success\s*$/)
  })

  it('cannot drive a terminal, with --json neither, and means the same to a parser', () => {
    const node = new BinaryNode()
    const entry = { verb: 'mount', error: 'a\u009b31m \u202e \u001b[1m \u{e0001}' }
    fs.mkdirSync(dirname(node.log))
    fs.writeFileSync(node.log, `${JSON.stringify(entry)}\n`)
    const json = logs(node, '--json')
    expect(json).toMatch(/^[ -~]*\n$/)
    expect(JSON.parse(json)).toEqual(entry)
    expect(logs(node)).toMatch(/^[ -~]*\n$/)
  })
})
