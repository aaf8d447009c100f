import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createSignature, SIGNATURE_NAMESPACE, SIGNING_KEY_VARIABLE } from '../../scripts/release/signature.ts'
import { newSigner } from './signer.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const SUMS = `${'a'.repeat(64)}  modekeep.tar.gz\n`

function signer(...args: Parameters<typeof newSigner>) {
  const made = newSigner(...args)
  onTestFinished(() => made.remove())
  return made
}

function fileWith(bytes: Uint8Array): string {
  const top = fs.mkdtempSync(join(tmpdir(), 'modekeep-signature-test-'))
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  fs.writeFileSync(join(top, 'sig'), bytes)
  return join(top, 'sig')
}

describe('the signature of a release', () => {
  it('is verified by the commands of docs/release.md, and not for other sums or keys', async () => {
    const one = signer()
    const file = fileWith(await createSignature(Buffer.from(SUMS), one.key))
    expect(one.verify(file, SUMS)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`Good "${SIGNATURE_NAMESPACE}" signature for modekeep`),
    })
    expect(one.verify(file, SUMS.replace('a', 'b')).status).not.toBe(0)
    expect(signer().verify(file, SUMS).status).not.toBe(0)
  })

  it('has the same bytes for every signing', async () => {
    const { key } = signer()
    const [first, second] = [
      await createSignature(Buffer.from(SUMS), key),
      await createSignature(Buffer.from(SUMS), key),
    ]
    expect(first.equals(second)).toBe(true)
    expect(String(first)).toMatch(/^-----BEGIN SSH SIGNATURE-----\n/)
  })

  it('for another purpose is refused', async () => {
    const one = signer()
    const { stdout } = spawnSync('ssh-keygen', ['-Y', 'sign', '-f', one.key, '-n', 'file'], { input: SUMS })
    expect(one.verify(fileWith(stdout), SUMS).status).not.toBe(0)
  })

  it.each([
    ['that does not exist', () => '/none/key'],
    ['that is invalid', () => fileWith(Buffer.from('no key'))],
  ])('with a key %s fails before any file is made', (_what, key) => {
    const output = fs.mkdtempSync(join(tmpdir(), 'modekeep-unsigned-'))
    onTestFinished(() => fs.rmSync(output, { recursive: true }))
    const { status, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/release.ts'), '--output', output], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: process.env.HOME, SOURCE_DATE_EPOCH: '1', [SIGNING_KEY_VARIABLE]: key() },
      timeout: 20_000,
    })
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^release: cannot sign with the key of MODEKEEP_RELEASE_KEY: ./),
    ])
    expect(fs.readdirSync(output)).toEqual([])
  })
})
