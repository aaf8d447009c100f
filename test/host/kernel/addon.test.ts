import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import type { KernelAddon } from '../../../src/host/linux/kernel.ts'

const ADDON = join(import.meta.dirname, `../../../driver/kernel/${process.arch}.node`)

function load(): KernelAddon {
  const loaded = { exports: {} as KernelAddon }
  process.dlopen(loaded, ADDON)
  return loaded.exports
}

/** Mappings that end in a guard of 64 KiB behind the rows and the arena: those of an environment. */
function mapped(): number {
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n')
  const spans = lines.map((line) => {
    const [, from = '0', to = '0', rights] = /^(\w+)-(\w+) (\S+)/.exec(line) ?? []
    return { size: Number.parseInt(to, 16) - Number.parseInt(from, 16), rights }
  })
  return spans.filter(({ size, rights }, index) => {
    return size === 0x10000 && rights === '---p' && spans[index - 1]?.rights === 'rw-p'
  }).length
}

async function inWorker(script: string): Promise<unknown> {
  const worker = new Worker(
    `const addon = { exports: {} }; process.dlopen(addon, ${JSON.stringify(ADDON)});
    const { arena, rows, calls, run } = addon.exports; ${script}`,
    { eval: true },
  )
  const answer = await new Promise((done, fail) => worker.once('message', done).once('error', fail))
  await worker.terminate()
  return answer
}

describe('the kernel addon', () => {
  it('answers with values: what the kernel returned, or -errno', () => {
    const { arena, rows, calls, run } = load()
    Buffer.from(arena).write('/no such file\0/\0')
    const openat = calls.openat ?? -1
    const close = calls.close ?? -1
    rows.set([openat, -100, 0])
    rows.set([openat, -100, 14, 0o2000000], 8)
    run(2)
    const [absent, root] = [rows[7], rows[15] ?? -1]
    rows.set([close, root])
    rows.set([close, root], 8)
    run(2)
    expect([absent, rows[7], rows[15]]).toEqual([-2, 0, -9])
    expect(root).toBeGreaterThan(2)
  })

  it('makes the rows up to the first that is refused', () => {
    const { rows, calls, run } = load()
    for (const at of [0, 8, 16]) rows.set([calls.close ?? -1, at === 8 ? 0.5 : -1, 0, 0, 0, 0, 0, 7], at)
    run(3)
    expect([rows[7], rows[15], rows[23]]).toEqual([-9, Number.NaN, 7])
  })

  it('keeps its memory when JavaScript gives its own view of it away', () => {
    const { arena, rows, calls, run } = load()
    const given = arena.transfer()
    rows.set([calls.openat ?? -1, -100, 0])
    run(1)
    expect(arena.byteLength).toBe(0)
    expect(given.byteLength).toBeGreaterThan(0)
    // An empty name.
    expect(rows[7]).toBe(-2)
  })

  it('has an arena of its own in each environment, which goes with it', async () => {
    const before = mapped()
    const own = load()
    Buffer.from(own.arena).write('own')
    expect(mapped()).toBe(before + 1)
    const script = `const { parentPort } = require('node:worker_threads')
      rows.set([calls.close, -1]); run(1)
      parentPort.postMessage([Buffer.from(arena).toString('latin1', 0, 3), rows[7]])`
    for (let round = 0; round < 5; round++) expect(await inWorker(script)).toEqual(['\0\0\0', -9])
    expect(mapped()).toBe(before + 1)
    expect(Buffer.from(own.arena).toString('latin1', 0, 3)).toBe('own')
  })
})
