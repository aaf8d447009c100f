import type { PodSecrets } from '../config/json-options.ts'
import { formatSource, type VolumeSource } from '../config/source.ts'
import { type Fault, SECRET_REF_PLACEHOLDER } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import {
  createLazyOptionRules,
  createValueRule,
  createWordRules,
  DECIMAL_NUMBER_FORM,
  type OptionRule,
  type OptionRules,
  parseOptionName,
} from './kind/options.ts'
import { createSourceFault } from './kind/source-path.ts'
import type { HelperStage } from './kind/staged.ts'

// The server resolves the links of its path, so the path is only text here. A leading "-" would be an option.
const SSHFS_SOURCE_FORM =
  /^[A-Za-z0-9_][A-Za-z0-9_.-]*@([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):\/([^,\\\p{Cc}]*[^/,\\\p{Cc}])?$/u

function findSshSourceFaults(requestedSource: VolumeSource): Fault[] {
  const source = formatSource(requestedSource)
  if (source === undefined) return [createSourceFault('is missing', 'write it like user@host:/directory')]
  if (SSHFS_SOURCE_FORM.test(source) && !/\/(\/|\.\.?(\/|$))/.test(source)) return []
  return [
    createSourceFault(
      `is ${quoteValue(source)}`,
      `write it like user@host:/directory, without "..", ".", "//", a comma or a trailing slash`,
    ),
  ]
}

/** These options exclude configuration, keys, agents and tunnels of the node's root, and untrusted servers. */
const SSHFS_FIXED_OPTIONS = [
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
const SSHFS_DEFAULT_OPTIONS = ['ConnectTimeout=30', 'ServerAliveInterval=15', 'ServerAliveCountMax=3']

export const SSH_SECRET_KEYS = ['ssh-privatekey', 'password', 'known_hosts'] as const

interface SshLogin {
  options: string[]
  args: string[]
  input: Uint8Array | undefined
}

/** Creates the login of sshfs. @throws {Refusal} for unusable secrets */
export function createSshLogin(
  secrets: PodSecrets,
  mountOptions: readonly string[],
  { put }: Pick<HelperStage, 'put'>,
): SshLogin {
  const given = new Set(mountOptions.map(parseOptionName))
  const options = [
    ...SSHFS_FIXED_OPTIONS,
    ...SSHFS_DEFAULT_OPTIONS.filter((option) => !given.has(parseOptionName(option))),
  ]
  const key = secrets.get('ssh-privatekey')
  const password = secrets.get('password')
  const hosts = secrets.get('known_hosts')
  if (key && password) throw Refusal.of('secret', 'the secret has both "ssh-privatekey" and "password"', 'keep one')
  if (!key && !password) {
    const found = secrets.size === 0 ? '' : `, and this one has ${quoteValue([...secrets.keys()])}`
    const remedy = secrets.size === 0 ? `name it in ${SECRET_REF_PLACEHOLDER} of the volume` : 'give it one of them'
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
  if (key) options.push(`IdentityFile=${put('key', appendMissingNewline(key))}`, 'BatchMode=yes')
  else options.push('IdentityFile=none', 'PubkeyAuthentication=no', 'password_stdin')
  return { options, args: ['-F', '/dev/null'], input: password && appendMissingNewline(password) }
}

/** ssh rejects a key whose last line has no newline, and reads a password up to its newline. */
function appendMissingNewline(bytes: Uint8Array): Uint8Array {
  return bytes.at(-1) === 0x0a ? bytes : Buffer.concat([bytes, Buffer.from('\n')])
}

const SECONDS_VALUE_FORM = /[0-9]{1,9}(?:\.[0-9]{1,6})?/
const YES_OR_NO_FORM = /yes|no/

/** Marks an option that changes a user's identity or permission bits: the node's configuration must name it. */
function markOptionRisky([name, plain]: readonly [string, OptionRule]): readonly [string, OptionRule] {
  return [name, { ...plain, isRisky: true }]
}

/** Options of libfuse itself, for every program (mount.fuse3(8)). */
const LIBFUSE_OPTION_RULES = createLazyOptionRules(() => [
  markOptionRisky(createValueRule('uid=1000', DECIMAL_NUMBER_FORM)),
  createValueRule('gid=1000', DECIMAL_NUMBER_FORM),
  markOptionRisky(createValueRule('umask=007', /[0-7]{3,4}/)),
  createValueRule('attr_timeout=1.0', SECONDS_VALUE_FORM),
  createValueRule('entry_timeout=1.0', SECONDS_VALUE_FORM),
  createValueRule('negative_timeout=0', SECONDS_VALUE_FORM),
  createValueRule('max_read=131072', DECIMAL_NUMBER_FORM),
  ...createWordRules('kernel_cache', 'auto_cache', 'noauto_cache', 'direct_io', 'noforget', 'hard_remove'),
])

interface FuseProgram {
  /**
   * The program's own options. None of them runs a command of the node, accesses a file of the node other than the source,
   * or connects to a host other than the source's.
   */
  options: () => OptionRules
  /** Checks the source of a program whose source is no path of the node. */
  sourceFaults?(source: VolumeSource): Fault[]
  login?: typeof createSshLogin
}

const SSHFS_PROGRAM: FuseProgram = {
  sourceFaults: findSshSourceFaults,
  login: createSshLogin,
  // sshfs(1). Not here: ssh_command, sftp_server, directport, delay_connect, idmap=file, and all files of ssh's.
  options: createLazyOptionRules(() => [
    createValueRule('port=22', /[1-9][0-9]{0,4}/),
    createValueRule('ServerAliveInterval=15', DECIMAL_NUMBER_FORM),
    createValueRule('ServerAliveCountMax=3', DECIMAL_NUMBER_FORM),
    createValueRule('ConnectTimeout=10', DECIMAL_NUMBER_FORM),
    createValueRule('Compression=yes', YES_OR_NO_FORM),
    createValueRule('compression=yes', YES_OR_NO_FORM),
    createValueRule('dir_cache=yes', YES_OR_NO_FORM),
    createValueRule('dcache_timeout=20', DECIMAL_NUMBER_FORM),
    createValueRule('idmap=user', /none|user/),
    createValueRule('max_conns=4', /[1-9][0-9]?/),
    ...createWordRules(
      'reconnect',
      'follow_symlinks',
      'transform_symlinks',
      'disable_hardlink',
      'no_readahead',
      'sshfs_sync',
    ),
  ]),
}

const BINDFS_PROGRAM: FuseProgram = {
  // bindfs(1). Not here: resolve-symlinks, which leads out of the source; map-passwd and map-group, which are files.
  options: createLazyOptionRules(() => [
    markOptionRisky(createValueRule('force-user=1000', DECIMAL_NUMBER_FORM)),
    createValueRule('force-group=1000', DECIMAL_NUMBER_FORM),
    markOptionRisky(createValueRule('perms=u=rwX:g=rX', /[0-7]{3,4}|[ugoarwxXstdDF=+:-]{1,80}/)),
    markOptionRisky(
      createValueRule('map=1000/2000:@100/@200', /@?[0-9]{1,10}\/@?[0-9]{1,10}(?::@?[0-9]{1,10}\/@?[0-9]{1,10})*/),
    ),
    markOptionRisky(createValueRule('create-for-user=1000', DECIMAL_NUMBER_FORM)),
    markOptionRisky(createValueRule('create-for-group=1000', DECIMAL_NUMBER_FORM)),
    markOptionRisky(createValueRule('create-with-perms=u=rw:g=r', /[0-7]{3,4}|[ugoarwxXstdDF=+:-]{1,80}/)),
    ...createWordRules('create-as-user').map(markOptionRisky),
    ...createWordRules('chown-ignore', 'chgrp-ignore', 'chmod-ignore', 'xattr-none', 'delete-deny'),
    ...createWordRules('rename-deny', 'hide-hard-links', 'multithreaded'),
  ]),
}

/**
 * Programs whose safe options modekeep lists: the node's configuration can only remove some. The key is the fsType without
 * the prefix `fuse.`.
 */
export const FUSE_PROGRAMS: ReadonlyMap<string, FuseProgram> = new Map([
  ['sshfs', SSHFS_PROGRAM],
  ['bindfs', BINDFS_PROGRAM],
  ['squashfuse', { options: createLazyOptionRules(() => [createValueRule('offset=4096', DECIMAL_NUMBER_FORM)]) }],
])

/** Returns a program's option rules. A program without an entry also takes the options that a rule of the node names. */
export function getFuseOptionRules(program: string): OptionRules {
  return new Map([...LIBFUSE_OPTION_RULES(), ...(FUSE_PROGRAMS.get(program)?.options() ?? [])])
}
