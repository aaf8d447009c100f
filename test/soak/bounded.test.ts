import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cannotServe, until } from '../helpers/fuse-node.ts'
import { PATIENCE, sized } from '../helpers/size.ts'
import type { Report } from './run.ts'

const MAIN = resolve(import.meta.dirname, 'main.ts')
const ROUNDS = sized(4, 80, 2000)
const cannot = cannotServe('bindfs', 'mkfs.ext4', 'setfattr', 'losetup')

function start(...args: string[]) {
  const node = [process.execPath, MAIN, '--json', ...args]
  const child = spawn(node[0] as string, node.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (data) => {
    text += data
  })
  const ended = new Promise<{ text: string; code: number | null }>((done) => {
    child.on('close', (code) => done({ text, code }))
  })
  return { child, ended }
}

describe.skipIf(cannot !== '')(`a soak${cannot && ` (skipped: ${cannot})`}`, () => {
  it(
    `of ${ROUNDS} rounds finds no fault, and leaves the state directory unchanged`,
    async () => {
      const { text } = await start('--rounds', String(ROUNDS)).ended
      const report: Report = JSON.parse(text)
      console.log(`soak: ${JSON.stringify({ ...report, odd: report.odd.length })}`)
      expect(report.odd.join('\n')).toBe('')
      expect([report.passed, report.failed]).toEqual([ROUNDS, 0])
      expect(report.calls.killed).toBeGreaterThan(ROUNDS / 4)
      expect(report.state.end).toBeLessThan(report.state.start + 64 * 1024)
    },
    PATIENCE,
  )

  it.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)('that %s ends leaves no process and no mount', async (signal) => {
    const { child, ended } = start('--rounds', '500')
    const pid = child.pid ?? 0
    await until(() => inside(pid) !== '')
    const namespace = inside(pid)
    // Calls, daemons and mounts are there by then.
    await until(() => processesIn(namespace).length > 5)
    child.kill(signal)
    const { code } = await ended
    expect(code).toBe(signal === 'SIGKILL' ? null : 130)
    // A mount of a mount namespace goes with its last process.
    await until(() => processesIn(namespace).length === 0)
  })
})

/** The namespace of a run's processes: that of a descendant, which is not this one's. */
function inside(pid: number): string {
  const own = namespaceOf('self')
  for (const child of childrenOf(pid)) {
    const found = namespaceOf(child) === own ? inside(child) : namespaceOf(child)
    if (found !== '') return found
  }
  return ''
}

function namespaceOf(pid: number | 'self'): string {
  return quietly(() => fs.readlinkSync(`/proc/${pid}/ns/pid`), '')
}

function childrenOf(pid: number): number[] {
  return quietly(() => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), '')
    .split(' ')
    .filter(Boolean)
    .map(Number)
}

function processesIn(namespace: string): string[] {
  return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && namespaceOf(Number(name)) === namespace)
}

function quietly<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch {
    return otherwise
  }
}
