import { SECRET_FILE } from '../../host/helpers.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import type { Secrets } from '../../request/secrets.ts'
import { sourceText } from '../../request/source.ts'
import type { MountContext, VolumeKind } from '../kind/kind.ts'
import { choices, modes, numbers, security, words } from '../kind/option-rules.ts'
import { type OptionRule, optionFaults, ownOptions } from '../kind/options.ts'
import { mountStaged } from '../kind/staged.ts'
import { credentialsOf } from './cifs-credentials.ts'
import { remoteFaults } from './remote-source.ts'

/** mount.cifs(8). Not here: what names files of the node or another server than the source. */
const OPTIONS: ReadonlyMap<string, OptionRule> = new Map([
  ...choices({ vers: ['3.1.1', '3.0.2', '3.02', '3.0', '3', '2.1', '2.0', '1.0', 'default'] }),
  ...security('ntlmssp', 'ntlmsspi', 'ntlmv2', 'ntlmv2i', 'krb5', 'krb5i', 'none'),
  ...choices({ cache: ['strict', 'loose', 'none', 'ro', 'singleclient'], reparse: ['default', 'nfs', 'wsl'] }),
  ['iocharset', { pattern: /^iocharset=[a-z0-9_-]{1,32}$/i, example: 'iocharset=utf8' }],
  ...words('guest', 'seal', 'sign', 'hard', 'soft', 'nobrl', 'mfsymlinks', 'sfu', 'serverino', 'noserverino'),
  ...words('mapposix', 'mapchars', 'nomapchars', 'nomapposix', 'nocase', 'posix', 'noposix', 'nounix', 'noacl'),
  ...words('perm', 'noperm', 'dynperm', 'forceuid', 'forcegid', 'noforceuid', 'noforcegid', 'cifsacl', 'setuids'),
  ...words('handlecache', 'nohandlecache', 'multichannel', 'nosharesock', 'persistenthandles', 'resilienthandles'),
  ...words('nodfs', 'nolease', 'rdma'),
  ...numbers({ uid: 1000, gid: 2000, port: 445, rsize: 4194304, wsize: 4194304, bsize: 1048576 }),
  ...numbers({ actimeo: 30, acregmax: 30, acdirmax: 60, closetimeo: 1, echo_interval: 60, handletimeout: 60000 }),
  ...numbers({ max_channels: 4, max_credits: 128, retrans: 1, rasize: 8388608 }),
  ...modes('file_mode', 'dir_mode'),
])

/** They belong into a secret: what is written here is in the pod, in argv and in the mount table. */
const CREDENTIALS = /^(user|username|pass|password|password2|dom|domain|workgroup|cred|credentials)$/

/** A share of an SMB server. */
export const cifs: VolumeKind = {
  name: 'cifs',
  persistent: true,
  walk: 'its server decides about groups',
  root: 'text',
  optionRules: () => OPTIONS,
  usesSecrets: true,

  faults(request, config) {
    const { mountOptions } = request
    const isCredential = (option: string) => CREDENTIALS.test(nameOf(option))
    const credentials = [...new Set(mountOptions.filter(isCredential).map(nameOf))]
    const others = mountOptions.filter((option) => !isCredential(option))
    return [
      ...remoteFaults(request, 'share', config),
      ...credentials.map(
        (name) =>
          `option "mountOptions" has ${name}: put username, password and domain into a secret and name it in secretRef`,
      ),
      ...optionFaults('cifs', others, OPTIONS, config),
    ]
  },

  groupOptions: (group) => [`gid=${group}`, 'forcegid', 'file_mode=0660', 'dir_mode=0770'],

  openSource: () => undefined,

  openTree(context) {
    const { host, request, secrets, timeoutSeconds } = context
    const options = [...ownOptions(request.mountOptions), ...groupOptions(context), 'nosuid', 'nodev']
    if (request.readOnly) options.push('ro')
    const secretFile = credentialsFor(secrets, request.mountOptions)
    if (secretFile) options.push(`credentials=${SECRET_FILE}`)
    return mountStaged(context, (directory) =>
      host.helpers.run({
        program: 'mount.cifs',
        args: [sourceText(request.source) ?? '', directory, '-o', options.join(',')],
        ...(secretFile && { secretFile }),
        timeoutSeconds,
        secrets: [...secrets.values()],
      }),
    )
  },
}

function nameOf(option: string): string {
  return option.split('=', 1)[0] ?? ''
}

/** The author's modes stay; a group of his own would contradict the pod's. */
function groupOptions({ group, request: { mountOptions } }: MountContext): string[] {
  if (group === undefined) return []
  const own = mountOptions.find((option) => ['gid', 'noforcegid'].includes(nameOf(option)))
  if (own !== undefined && own !== `gid=${group}`) {
    throw new Refusal(
      `option "mountOptions" has ${quoted(own)}, but ownership "auto" shows all files as group ${group}: leave one of them out`,
    )
  }
  const written = new Set(mountOptions.map(nameOf))
  return (cifs.groupOptions?.(group) ?? []).filter((option) => !written.has(nameOf(option)))
}

const WITHOUT = /^(guest|sec=(krb5i?|none))$/

function credentialsFor(secrets: Secrets, mountOptions: readonly string[]): Uint8Array | undefined {
  const without = mountOptions.find((option) => WITHOUT.test(option))
  const credentials = credentialsOf(secrets)
  if (credentials && (without === 'guest' || without === 'sec=none')) {
    throw new Refusal(`option "mountOptions" has ${without}, but a secret has a username: leave one of them out`)
  }
  if (credentials || without) return credentials
  const found = secrets.size === 0 ? '' : `; the secret has ${quoted([...secrets.keys()])}`
  throw new Refusal(
    `a share needs a user: name a secret with the keys username and password in secretRef, or write guest or, where the node allows it, sec=krb5 or sec=krb5i into mountOptions${found}`,
  )
}
