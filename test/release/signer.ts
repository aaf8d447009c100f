import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blocksOf } from '../docs/example.ts'

/** A signer with a new key, for the time of a test. */
export interface Signer {
  /** The private key's file. */
  key: string
  /** As docs/release.md has administrators do it. */
  verify(signature: string, sums: string): { status: number | null; stdout: string; stderr: string }
  remove(): void
}

const PAGE = join(import.meta.dirname, '../../docs/release.md')

/** @param type ed25519 signs the same with the same bytes */
export function newSigner(type = 'ed25519', passphrase = ''): Signer {
  const top = fs.mkdtempSync(join(tmpdir(), 'modekeep-signer-'))
  const key = join(top, 'key')
  execFileSync('ssh-keygen', ['-q', '-t', type, '-N', passphrase, '-C', 'a test', '-f', key])
  const [kind, text] = fs.readFileSync(`${key}.pub`, 'utf8').split(' ')
  const commands = blocksOf(fs.readFileSync(PAGE, 'utf8'), 'sh').find((block) => block.text.includes('-Y verify'))?.text
  const script = (commands ?? 'exit 99').replace('ssh-ed25519 AAAA…', `${kind} ${text}`).replace(/^sha256sum .*$/m, '')
  return {
    key,
    verify(signature, sums) {
      const place = fs.mkdtempSync(join(top, 'verify-'))
      fs.copyFileSync(signature, join(place, 'SHA256SUMS.sig'))
      fs.writeFileSync(join(place, 'SHA256SUMS'), sums)
      return spawnSync('sh', ['-euc', script], { cwd: place, encoding: 'utf8' })
    },
    remove: () => fs.rmSync(top, { recursive: true, force: true }),
  }
}
