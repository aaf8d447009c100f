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

  it('modekeep logs shows rotated lines while the new log file is empty', () => {
    const node = new BinaryNode()
    expect(() => logs(node)).toThrow('there is no log')
    fs.mkdirSync(dirname(node.log))
    fs.writeFileSync(`${node.log}.1`, '{"verb":"mount","outcome":"Success"}\n')
    expect(logs(node)).toMatch(/^\s+mount\s+Success\s*$/)
  })

  it('modekeep logs shows each warning of a repeated call once, even while other processes write', async () => {
    const node = new BinaryNode()
    const config = JSON.parse(fs.readFileSync(`${node.top}/config.json`, 'utf8'))
    fs.writeFileSync(`${node.top}/config.json`, JSON.stringify({ ...config, unknown: 1 }))
    const mount = (pod: string) => node.call('mount', node.podDirectory(pod), '{}')
    await Promise.all(['a', 'b', 'c', 'd'].map(mount))
    await Promise.all(['a', 'b', 'c', 'd', 'a'].map(mount))
    const lines = node.logLines()
    const [warnings, calls] = ['warn', 'error'].map((wanted) => lines.filter(({ level }) => level === wanted))
    expect(new Set(warnings?.map(({ directory }) => directory)).size).toBe(4)
    expect([warnings?.length, calls?.length, lines.length]).toEqual([4, 9, 13])
    expect(calls?.map(({ repeatedWarnings }) => repeatedWarnings)).toEqual([...Array(4), 1, 1, 1, 1, 1])
    expect(logs(node, '--lines', '1')).toContain('warnings as before: 1')
  })

  it('modekeep logs escapes control characters, even with --json, where a parser reads the original value', () => {
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
