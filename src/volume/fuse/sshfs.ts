import { createOptionFault, type Fault, SECRET_REF_WORD } from '../../errors/fault.ts'
import { quoted, Refusal } from '../../errors/refusal.ts'
import type { Secrets } from '../../request/json-options.ts'
import { formatSource, type Source } from '../../request/source.ts'
import { parseOptionName } from '../kind/options.ts'
import type { Stage } from '../kind/staged.ts'

// The server resolves the links of its path, so the path is only text here. A leading "-" would be an option.
const SOURCE =
  /^[A-Za-z0-9_][A-Za-z0-9_.-]*@([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):\/([^,\\\p{Cc}]*[^/,\\\p{Cc}])?$/u

export function findSshSourceFaults(requestedSource: Source): Fault[] {
  const source = formatSource(requestedSource)
  if (source === undefined)
    return [createOptionFault('source-invalid', 'source', 'is missing', 'write it like user@host:/directory')]
  if (SOURCE.test(source) && !/\/(\/|\.\.?(\/|$))/.test(source)) return []
  return [
    createOptionFault(
      'source-invalid',
      'source',
      `is ${quoted(source)}`,
      `write it like user@host:/directory, without "..", ".", "//", a comma or a trailing slash`,
    ),
  ]
}

/** These options exclude configuration, keys, agents and tunnels of the node's root, and untrusted servers. */
const ALWAYS = [
  'StrictHostKeyChecking=yes',
  'UpdateHostKeys=no',
  'IdentitiesOnly=yes',
  'IdentityAgent=none',
  'PermitLocalCommand=no',
  'GSSAPIAuthentication=no',
  'HostbasedAuthentication=no',
  'ControlMaster=no',
  'ControlPath=none',
]

/** With these options ssh detects an unresponsive server. Otherwise it would wait longer than the mount exists. */
const DEFAULTS = ['ConnectTimeout=30', 'ServerAliveInterval=15', 'ServerAliveCountMax=3']

/** The keys of a Secret that sshfs takes. */
export const SSH_KEYS = ['ssh-privatekey', 'password', 'known_hosts'] as const

interface SshLogin {
  options: string[]
  args: string[]
  input: Uint8Array | undefined
}

/** Creates the login of sshfs. @throws {Refusal} for unusable secrets */
export function createSshLogin(
  secrets: Secrets,
  mountOptions: readonly string[],
  { put }: Pick<Stage, 'put'>,
): SshLogin {
  const given = new Set(mountOptions.map(parseOptionName))
  const options = [...ALWAYS, ...DEFAULTS.filter((option) => !given.has(parseOptionName(option)))]
  const key = secrets.get('ssh-privatekey')
  const password = secrets.get('password')
  const hosts = secrets.get('known_hosts')
  if (key && password) throw Refusal.of('secret', 'the secret has both "ssh-privatekey" and "password"', 'keep one')
  if (!key && !password) {
    const found = secrets.size === 0 ? '' : `, and this one has ${quoted([...secrets.keys()])}`
    const remedy = secrets.size === 0 ? `name it in ${SECRET_REF_WORD} of the volume` : 'give it one of them'
    throw Refusal.of('secret', `fuse.sshfs needs a secret with the key "ssh-privatekey" or "password"${found}`, remedy)
  }
  if (key && mountOptions.includes('reconnect')) {
    throw Refusal.of(
      'secret',
      'mountOptions has reconnect, for which sshfs would need the key again, which is not stored',
      'leave it out, or use a password',
    )
  }
  if (password && /[\0\r\n]/.test(Buffer.from(password).toString('latin1'))) {
    throw Refusal.of('secret', 'the secret "password" has a line break or a NUL, which sshfs cannot read', 'remove it')
  }
  if (hosts) options.push(`UserKnownHostsFile=${put('known_hosts', hosts)}`, 'GlobalKnownHostsFile=/dev/null')
  if (key) options.push(`IdentityFile=${put('key', endWithNewline(key))}`, 'BatchMode=yes')
  else options.push('IdentityFile=none', 'PubkeyAuthentication=no', 'password_stdin')
  return { options, args: ['-F', '/dev/null'], input: password && endWithNewline(password) }
}

/** ssh rejects a key whose last line has no newline, and reads a password up to its newline. */
function endWithNewline(bytes: Uint8Array): Uint8Array {
  return bytes.at(-1) === 0x0a ? bytes : Buffer.concat([bytes, Buffer.from('\n')])
}
