import type { PodSecrets } from '../config/json-options.ts'
import { createFault, createOptionFault, type Fault, SECRET_REF_PLACEHOLDER } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { SECRET_FILE_PATH } from '../kernel/helpers.ts'
import type { MountContext, VolumeKind } from './kind/kind.ts'
import {
  createChoiceRules,
  createLazyOptionRules,
  createNumberRules,
  createSecurityRules,
  createValueRule,
  createWordRules,
  FSTAB_OPTION_REMEDIES,
  findOptionFaults,
  type OptionRemedies,
  parseOptionName,
} from './kind/options.ts'
import { findRemoteSourceFaults } from './kind/source-path.ts'
import { mountRemoteSource, UNPRIVILEGED_MOUNT_OPTIONS } from './kind/staged.ts'

const CIFS_MODE_FORM = /0?[0-7]{3,4}/

/** Options of mount.cifs(8), without those that name files of the node or a server other than the source. */
const CIFS_OPTION_RULES = createLazyOptionRules(() => [
  ...createChoiceRules({ vers: ['3.1.1', '3.0.2', '3.02', '3.0', '3', '2.1', '2.0', '1.0', 'default'] }),
  ...createSecurityRules('ntlmssp', 'ntlmsspi', 'ntlmv2', 'ntlmv2i', 'krb5', 'krb5i', 'none'),
  ...createChoiceRules({
    cache: ['strict', 'loose', 'none', 'ro', 'singleclient'],
    reparse: ['default', 'nfs', 'wsl'],
  }),
  createValueRule('iocharset=utf8', /[a-z0-9_-]{1,32}/i),
  ...createWordRules('guest', 'seal', 'sign', 'hard', 'soft', 'nobrl', 'mfsymlinks', 'sfu', 'serverino', 'noserverino'),
  ...createWordRules(
    'mapposix',
    'mapchars',
    'nomapchars',
    'nomapposix',
    'nocase',
    'posix',
    'noposix',
    'nounix',
    'noacl',
  ),
  ...createWordRules(
    'perm',
    'noperm',
    'dynperm',
    'forceuid',
    'forcegid',
    'noforceuid',
    'noforcegid',
    'cifsacl',
    'setuids',
  ),
  ...createWordRules(
    'handlecache',
    'nohandlecache',
    'multichannel',
    'nosharesock',
    'persistenthandles',
    'resilienthandles',
  ),
  ...createWordRules('nodfs', 'nolease', 'rdma'),
  ...createNumberRules({ uid: 1000, gid: 2000, port: 445, rsize: 4194304, wsize: 4194304, bsize: 1048576 }),
  ...createNumberRules({
    actimeo: 30,
    acregmax: 30,
    acdirmax: 60,
    closetimeo: 1,
    echo_interval: 60,
    handletimeout: 60000,
  }),
  ...createNumberRules({ max_channels: 4, max_credits: 128, retrans: 1, rasize: 8388608 }),
  createValueRule('file_mode=0770', CIFS_MODE_FORM),
  createValueRule('dir_mode=0770', CIFS_MODE_FORM),
])

const CIFS_OPTION_REMEDIES: OptionRemedies = new Map([
  ...FSTAB_OPTION_REMEDIES,
  ['vers=3.11', 'instead of vers=3.11 write vers=3.1.1'],
  ['idsfromsid', 'instead of idsfromsid write uid and gid, as it lets the server choose owners on this node'],
  ['modefromsid', 'instead of modefromsid write file_mode and dir_mode, as it stores modes in ACLs of the server'],
  ['multiuser', 'leave multiuser out, as it needs credentials in the keyrings of users of the node, which pods lack'],
  ['cruid', 'leave cruid out, as it names a user of the node whose Kerberos tickets are used'],
  ['intr', 'leave intr out, as the kernel ignores it'],
])

/** Credentials belong in a Secret: mountOptions appear in the pod, in argv and in the mount table. */
export const CREDENTIAL_OPTION_FORM = /^(user|username|pass|password|password2|dom|domain|workgroup|cred|credentials)$/

export const cifsKind: VolumeKind = {
  name: 'cifs',
  persistent: true,
  walk: 'its server decides about groups',
  root: 'text',
  isRemote: true,
  optionRules: CIFS_OPTION_RULES,
  usesSecrets: true,
  secretKeys: ['username', 'password', 'domain'],

  faults(request) {
    const { mountOptions } = request
    const isCredential = (option: string) => CREDENTIAL_OPTION_FORM.test(parseOptionName(option))
    const credentials = [...new Set(mountOptions.filter(isCredential).map(parseOptionName))]
    const others = mountOptions.filter((option) => !isCredential(option))
    return [
      ...findRemoteSourceFaults(request, 'share'),
      ...credentials.map((name) =>
        createOptionFault(
          'secret',
          'mountOptions',
          `has ${name}`,
          `put username, password and domain into a secret and name it in ${SECRET_REF_PLACEHOLDER}`,
        ),
      ),
      ...findOptionFaults('cifs', others, CIFS_OPTION_RULES(), false, CIFS_OPTION_REMEDIES),
    ]
  },

  groupOptions: (group) => [`gid=${group}`, 'forcegid', 'file_mode=0660', 'dir_mode=0770'],

  openTree(context) {
    const { secrets, request } = context
    const options = [...listCifsGroupOptions(context), ...UNPRIVILEGED_MOUNT_OPTIONS]
    const secretFile = chooseCifsCredentials(secrets, request.mountOptions)
    if (!secretFile) return mountRemoteSource(context, options, {})
    return mountRemoteSource(context, [...options, `credentials=${SECRET_FILE_PATH}`], { secretFile })
  },
}

/** Keeps the author's modes. Another group in mountOptions would contradict the pod's group. */
function listCifsGroupOptions({ group, request: { mountOptions } }: MountContext): string[] {
  if (group === undefined) return []
  const own = mountOptions.find((option) => ['gid', 'noforcegid'].includes(parseOptionName(option)))
  if (own !== undefined && own !== `gid=${group}`) {
    const reason = `has ${quoteValue(own)}, but ownership "auto" shows all files as group ${group}`
    throw new Refusal(createOptionFault('option-contradiction', 'mountOptions', reason, 'leave one of them out'))
  }
  const written = new Set(mountOptions.map(parseOptionName))
  return (cifsKind.groupOptions?.(group) ?? []).filter((option) => !written.has(parseOptionName(option)))
}

const NO_CREDENTIALS_OPTION_FORM = /^(guest|sec=(krb5i?|none))$/

function chooseCifsCredentials(secrets: PodSecrets, mountOptions: readonly string[]): Uint8Array | undefined {
  const without = mountOptions.find((option) => NO_CREDENTIALS_OPTION_FORM.test(option))
  const credentials = formatCifsCredentials(secrets)
  if (credentials && (without === 'guest' || without === 'sec=none')) {
    const reason = `has ${without}, but a secret has a username`
    throw new Refusal(createOptionFault('secret', 'mountOptions', reason, 'leave one of them out'))
  }
  if (credentials || without) return credentials
  const [found, remedy] =
    secrets.size === 0
      ? ['', `name a secret with the keys username and password in ${SECRET_REF_PLACEHOLDER}`]
      : [`, and the secret has only ${quoteValue([...secrets.keys()])}`, 'give it the keys username and password']
  throw Refusal.of(
    'secret',
    `a share needs a user${found}`,
    `${remedy}, or write guest or, where the node allows it, sec=krb5 or sec=krb5i into mountOptions`,
  )
}

/** mount.cifs: MAX_USERNAME_SIZE, MOUNT_PASSWD_SIZE (of what it makes of a password), MAX_DOMAIN_SIZE. Bytes. */
const MAX_CREDENTIAL_BYTES = { username: 256, password: 512, domain: 256 } as const
type CredentialKey = keyof typeof MAX_CREDENTIAL_BYTES
const CREDENTIAL_KEYS = Object.keys(MAX_CREDENTIAL_BYTES) as CredentialKey[]
const COMMA_BYTE = 0x2c

/**
 * Formats the credentials file of mount.cifs(8), which reads each value byte by byte up to the newline.
 * @returns undefined if the secret has no credentials
 * @throws {Refusal} naming the key of a value that the format cannot carry, never the value
 */
export function formatCifsCredentials(secrets: PodSecrets): Uint8Array | undefined {
  const given = CREDENTIAL_KEYS.map((key) => ({ key, value: secrets.get(key) }))
  if (given.every(({ value }) => value === undefined)) return undefined
  const faults = given.flatMap(({ key, value }) => findCredentialFault(key, value) ?? [])
  if (faults.length > 0) throw new Refusal(faults)
  return Buffer.concat(
    given.flatMap(({ key, value }) => (value ? [Buffer.from(`${key}=`), value, Buffer.from('\n')] : [])),
  )
}

function findCredentialFault(key: CredentialKey, value: Uint8Array | undefined): Fault | undefined {
  const createKeyFault = (what: string, remedy: string) =>
    createFault('secret', `the secret's "${key}" ${what}`, remedy)
  if (value === undefined)
    return key === 'domain' ? undefined : createFault('secret', `the secret has no key "${key}"`, 'add it')
  const has = (character: string) => value.includes(character.charCodeAt(0))
  if (has('\n'))
    return createKeyFault('has a newline, which no CIFS credential can', 'write it without (printf instead of echo)')
  if (has('\0')) return createKeyFault('has a NUL byte, which no CIFS credential can', 'write it without')
  // mount.cifs doubles the commas of a password for the kernel; in another value a comma would begin a mount option.
  if (has(',') && key !== 'password')
    return createKeyFault('has a comma, which mount.cifs cannot pass on', 'write it without')
  const length = value.length + value.filter((byte) => byte === COMMA_BYTE).length
  if (length >= MAX_CREDENTIAL_BYTES[key]) {
    const counted = key === 'password' ? ', a comma counted twice' : ''
    return createKeyFault('is too long', `mount.cifs takes ${MAX_CREDENTIAL_BYTES[key] - 1} bytes${counted}`)
  }
  return length === 0 && key === 'username' ? createKeyFault('is empty', 'write the name of a user') : undefined
}
