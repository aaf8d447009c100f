import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExecaError, execa } from 'execa'
import fs from 'fs-extra'

/** What a signature is for, ssh-keygen(1) -n: one of another program's is none of a release. */
export const SIGNATURE_NAMESPACE = 'modekeep-release'

/** The variable that names the key's file. */
export const SIGNING_KEY_VARIABLE = 'MODEKEEP_RELEASE_KEY'

/**
 * Signs as SSH does (PROTOCOL.sshsig), so that whoever has OpenSSH can verify it.
 * @param key a private key's file; or a public one's, if an SSH agent has the private one
 * @throws {Error} with what ssh-keygen said
 */
export async function createSignature(bytes: Uint8Array, key: string): Promise<Buffer> {
  const signature = await runSshKeygen(['-Y', 'sign', '-f', key, '-n', SIGNATURE_NAMESPACE], bytes)
  // Whatever was signed with: a key that cannot be used to verify is found here, and not by an administrator.
  const work = await fs.mkdtemp(join(tmpdir(), 'modekeep-signature-'))
  try {
    const file = join(work, 'sig')
    await fs.writeFile(file, signature)
    await runSshKeygen(['-Y', 'check-novalidate', '-n', SIGNATURE_NAMESPACE, '-s', file], bytes)
  } finally {
    await fs.remove(work)
  }
  return signature
}

async function runSshKeygen(args: readonly string[], input: Uint8Array): Promise<Buffer> {
  try {
    const { stdout } = await execa('ssh-keygen', args, { input, encoding: 'buffer', stripFinalNewline: false })
    return Buffer.from(stdout)
  } catch (error) {
    if (!(error instanceof ExecaError)) throw error
    const said = String(error.stderr ?? '').trim() || error.shortMessage
    throw new Error(`cannot sign with the key of ${SIGNING_KEY_VARIABLE}: ${said}`)
  }
}
