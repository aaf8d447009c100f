import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const EXECUTABLE = resolve(import.meta.dirname, '../../dist/modekeep')
const top = mkdtempSync(join(tmpdir(), 'modekeep-migrate-'))
afterAll(() => rmSync(top, { recursive: true }))

const call = (args: string[], input = '') => spawnSync(EXECUTABLE, ['migrate', ...args], { encoding: 'utf8', input })
const NFS = 'flexVolume:\n  driver: k8s/nfs\n  options:\n    server: a\n    share: b\n'
const DONE = 'flexVolume:\n  driver: modekeep/fs\n  fsType: nfs\n  options:\n    source: a:/b\n'

describe('modekeep migrate', () => {
  it('prints the manifests, prints remarks on stderr, and exits with 0 only if everything was converted', () => {
    const file = join(top, 'pv.yaml')
    writeFileSync(file, NFS)
    const all = call([file])
    expect([all.status, all.stdout]).toEqual([0, DONE])
    expect(all.stderr).toContain('{"sources":["a:/b"],"fsTypes":["nfs"]}')
    expect(all.stderr).toContain('modekeep: 1 volume and 0 Secrets rewritten, 0 things left to do\n')
    const some = call(['-'], `${NFS}---\nflexVolume: {driver: azure/kv}\n`)
    expect([some.status, some.stdout]).toEqual([1, `${DONE}---\nflexVolume: {driver: azure/kv}\n`])
    expect(some.stderr).toMatch(/^left: stdin, line 7: driver "azure\/kv" stays: /)
    const json = call(['-', '--json'], NFS)
    expect(JSON.parse(json.stdout)).toMatchObject({ kind: 'Migrate', file: '-', text: DONE, volumes: 1, left: [] })
    expect(json.stderr).toBe('')
  })

  it('fails with a sentence if it cannot read or write, and with status 2 for invalid arguments', () => {
    expect(call([])).toMatchObject({ status: 2, stdout: '' })
    expect(call(['a', 'b'])).toMatchObject({ status: 2, stdout: '' })
    const none = call([join(top, 'none')])
    expect([none.status, none.stderr]).toEqual([
      1,
      `modekeep: file "${top}/none" cannot be read (ENOENT): name another [file-access]\n`,
    ])
    expect(call(['-'], 'a: [')).toMatchObject({ status: 1, stderr: expect.stringContaining('is not YAML') })
    const full = openSync('/dev/full', 'w')
    const { status } = spawnSync(EXECUTABLE, ['migrate', '-'], { input: NFS, stdio: ['pipe', full, 'pipe'] })
    expect(status).toBe(1)
  })

  it('refuses a file that is not regular without waiting, and a file above 4 MiB', () => {
    const fifo = join(top, 'fifo')
    execFileSync('mkfifo', [fifo])
    for (const file of [fifo, '/dev/zero', top]) {
      const { status, stderr } = call([file])
      expect([status, stderr]).toEqual([
        1,
        `modekeep: file "${file}" is not a regular file: name one, or "-" for stdin [file-access]\n`,
      ])
    }
    const large = join(top, 'large.yaml')
    writeFileSync(large, `#${'x'.repeat(4 * 1024 * 1024)}`)
    expect(call([large])).toMatchObject({ status: 1, stderr: expect.stringContaining('has more than 4 MiB: split it') })
    expect(call(['-'], `#${'x'.repeat(5 * 1024 * 1024)}`)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('has more than 4 MiB: split it'),
    })
  })
})
