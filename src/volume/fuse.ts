import type { NodeConfig } from '../config/defaults.ts'
import type { PodSecrets } from '../config/json-options.ts'
import type { SecretKeys } from '../config/rule.ts'
import { formatSource, getSourcePath, type VolumeSource } from '../config/source.ts'
import { createOptionFault, type Fault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { SECRET_FILE_PATH } from '../kernel/helpers.ts'
import { DIRECTORY_TYPE, FILE_TYPE_MASK, REGULAR_FILE_TYPE } from '../kernel/host.ts'
import { FUSE_PROGRAMS, getFuseOptionRules, SSH_SECRET_KEYS } from './fuse-programs.ts'
import type { MountContext, VolumeKind } from './kind/kind.ts'
import { createSubPathFault, filterFileSystemOptions, findOptionFaults, parseOptionName } from './kind/options.ts'
import { createSourceFault, findSourcePathFaults, openNodeSource, type SourceRequirement } from './kind/source-path.ts'
import { type HelperStage, mountOnStage } from './kind/staged.ts'

const FUSE_FS_TYPE_FORM = /^fuse\.([a-z0-9][a-z0-9._-]*)$/

/** The kernel checks modes for all users. Otherwise each process of the pod would have the access of the daemon, root. */
const FUSE_FIXED_OPTIONS = ['allow_other', 'default_permissions']

const DIRECTORY_OR_FILE_REQUIREMENT: SourceRequirement = {
  // A FIFO, a socket or a device is refused.
  fault: ({ mode }) =>
    [DIRECTORY_TYPE, REGULAR_FILE_TYPE].includes(mode & FILE_TYPE_MASK)
      ? undefined
      : 'is neither a directory nor a file: name one',
}

/** Finds the kind of a FUSE program of the node by its fsType, such as `fuse.sshfs`. Undefined for any other fsType. */
export function findFuseKind(name: string): VolumeKind | undefined {
  const [, program] = FUSE_FS_TYPE_FORM.exec(name) ?? []
  if (program === undefined) return undefined
  const known = FUSE_PROGRAMS.get(program)
  return {
    name,
    persistent: true,
    walk: 'its daemon decides about groups',
    root: 'text',
    hasDaemon: true,
    ...(known?.login && { usesSecrets: true, secretKeys: SSH_SECRET_KEYS }),
    ...(known === undefined && { takesAny: true, usesSecrets: true, secretKeys: 'by rule' }),
    groupOptions: listFuseGroupOptions,
    optionRules: () => getFuseOptionRules(program),

    faults({ source, subPath, mountOptions }, config) {
      const faults = known?.sourceFaults?.(source) ?? findFuseSourceFaults(source, known !== undefined, config)
      if (subPath !== undefined) {
        faults.push(createSubPathFault(subPath, `${name} has none, name the directory in "source"`))
      }
      return [...faults, ...findOptionFaults(name, mountOptions, getFuseOptionRules(program), known === undefined)]
    },

    openSource(host, { source }) {
      const path = getSourcePath(source)
      return path === undefined ? undefined : openNodeSource(host, path, DIRECTORY_OR_FILE_REQUIREMENT)
    },

    openTree: (context) =>
      mountOnStage(context, (directory, stage) => startFuseProgram(program, context, directory, stage)),
  }
}

/** @param isLocal the program takes only a path of the node; otherwise also a text of its own, such as `bucket` */
function findFuseSourceFaults(source: VolumeSource, isLocal: boolean, config: NodeConfig): Fault[] {
  const text = formatSource(source)
  // Other kinds take two leading slashes as a share; a program of the node does not.
  if (text?.startsWith('/')) return findSourcePathFaults(text, config)
  if (isLocal) return [createSourceFault('names no path of this node', 'write what the program is to show')]
  if (text === undefined) return [createSourceFault('is missing', 'write what the program is to show')]
  // The program would take a leading "-" as an option, and ".." could lead out of the permitted source.
  if (/^[A-Za-z0-9_]\P{Cc}*$/u.test(text) && !/(^|[/:])\.\.?(\/|$)/.test(text)) return []
  return [
    createSourceFault(
      `is ${quoteValue(text)}`,
      `begin it with a letter or a digit, and write no "..", "." or control character`,
    ),
  ]
}

async function startFuseProgram(
  program: string,
  { host, request, source, group, secrets, timeoutSeconds, warn }: MountContext,
  directory: string,
  stage: HelperStage,
): Promise<void> {
  const { mountOptions, readOnly, fsGroup, secretKeys = {} } = request
  const known = FUSE_PROGRAMS.get(program)
  const login = known?.login?.(secrets, mountOptions, stage)
  const delivered = known === undefined ? deliverSecrets(secrets, secretKeys, mountOptions, stage) : undefined
  const text = formatSource(request.source) ?? ''
  const own = filterFileSystemOptions(mountOptions)
  const taken = new Set(own.map(parseOptionName))
  // Permission bits are added only with "grant".
  const isWanted = (name: string) => !taken.has(name) && (fsGroup.access === 'grant' || name !== 'umask')
  const groupOptions = group === undefined ? [] : listFuseGroupOptions(group)
  // The mount table shows fsname: without it, it would show the path in the staging directory.
  const isNamed = source !== undefined && known !== undefined && !/[,\\]/.test(text)
  const options = [
    ...FUSE_FIXED_OPTIONS,
    ...(readOnly ? ['ro'] : []),
    ...own,
    ...groupOptions.filter((option) => isWanted(parseOptionName(option))),
    ...(isNamed ? [`fsname=${text}`] : []),
    ...(login?.options ?? delivered?.options ?? []),
  ]
  // The program gets the opened source, even if its path leads elsewhere by then.
  const shownSource = source === undefined ? text : stage.show(source.handle, readOnly)
  await host.helpers.run({
    program,
    args: [shownSource, directory, '-o', options.join(','), ...(login?.args ?? [])],
    ...(login?.input ? { input: login.input } : {}),
    ...(delivered?.secretFile ? { secretFile: delivered.secretFile } : {}),
    ...(delivered ? { environment: delivered.environment } : {}),
    timeoutSeconds,
    secrets: [...secrets.values()],
    leavesDaemon: true,
    warn,
  })
}

const listFuseGroupOptions = (group: number): string[] => [`gid=${group}`, 'umask=0007']

/** Options, environment and file that pass a Secret's keys to a program. Its arguments name files, and contain no value. */
interface DeliveredSecrets {
  options: string[]
  environment: Record<string, string>
  /** Content of the file that the daemon inherits. */
  secretFile?: Uint8Array
}

/**
 * Passes each key as the rule says.
 * @param secretKeys the entry of the rule that allowed the mount
 * @throws {Refusal} for a value that a variable cannot carry, and for an option that the pod's author has set
 */
function deliverSecrets(
  secrets: PodSecrets,
  secretKeys: SecretKeys,
  mountOptions: readonly string[],
  { put }: Pick<HelperStage, 'put'>,
): DeliveredSecrets {
  const written = new Set(mountOptions.map(parseOptionName))
  const delivered: DeliveredSecrets = { options: [], environment: {} }
  for (const [index, [key, value]] of [...secrets].entries()) {
    const delivery = Object.hasOwn(secretKeys, key) ? secretKeys[key] : undefined
    if (delivery === undefined)
      throw Refusal.of('secret', `the Secret has ${quoteValue(key)}, which no rule names`, 'remove the key')
    if ('variable' in delivery) {
      delivered.environment[delivery.variable] = decodeSecretVariable(key, value)
      continue
    }
    const { option, keep } = delivery
    if (written.has(option)) {
      const reason = `has ${option}, which the node's configuration sets from the Secret`
      throw new Refusal(createOptionFault('secret', 'mountOptions', reason, 'leave it out'))
    }
    if (keep === 'daemon') delivered.secretFile = value
    // The file has a name of its own, because the key may be too long for a file name.
    delivered.options.push(`${option}=${keep === 'daemon' ? SECRET_FILE_PATH : put(`secret-${index}`, value)}`)
  }
  return delivered
}

function decodeSecretVariable(key: string, value: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
    if (!text.includes('\0')) return text
  } catch {
    // The refusal below omits the value.
  }
  throw Refusal.of(
    'secret',
    `key ${quoteValue(key)} of the Secret has a NUL or is not UTF-8, so no environment variable can carry it`,
    'correct the value',
  )
}
