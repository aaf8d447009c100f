import { createOptionFault, type Fault } from '../../errors/fault.ts'
import { quoted } from '../../errors/refusal.ts'
import { DIRECTORY, FILE_TYPE, REGULAR } from '../../host/host.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { formatSource, getSourcePath, type Source } from '../../request/source.ts'
import type { MountContext, VolumeKind } from '../kind/kind.ts'
import { filterOwnOptions, findOptionFaults, parseOptionName } from '../kind/options.ts'
import { findPathFaults, openNode, type SourceRequirement } from '../kind/source-path.ts'
import { mountStaged, type Stage } from '../kind/staged.ts'
import { PROGRAMS, readFuseRules } from './programs.ts'
import { deliverSecrets } from './secrets.ts'
import { SSH_KEYS } from './sshfs.ts'

const FS_TYPE = /^fuse\.([a-z0-9][a-z0-9._-]*)$/

/** The kernel checks modes for all users. Otherwise each process of the pod would have the access of the daemon, root. */
const ALWAYS = ['allow_other', 'default_permissions']

const A_DIRECTORY_OR_FILE: SourceRequirement = {
  // A FIFO, a socket or a device is refused.
  fault: ({ mode }) =>
    [DIRECTORY, REGULAR].includes(mode & FILE_TYPE) ? undefined : 'is neither a directory nor a file: name one',
}

/** Finds the kind of a FUSE program of the node by its fsType, such as `fuse.sshfs`. Undefined for any other fsType. */
export function findFuseKind(name: string): VolumeKind | undefined {
  const [, program] = FS_TYPE.exec(name) ?? []
  if (program === undefined) return undefined
  const known = PROGRAMS.get(program)
  return {
    name,
    persistent: true,
    walk: 'its daemon decides about groups',
    root: 'text',
    hasDaemon: true,
    ...(known?.login && { usesSecrets: true, secretKeys: SSH_KEYS }),
    ...(known === undefined && { takesAny: true, usesSecrets: true, secretKeys: 'by rule' }),
    groupOptions: listFuseGroupOptions,
    optionRules: () => readFuseRules(program),

    faults({ source, subPath, mountOptions }, config) {
      const faults = known?.sourceFaults?.(source) ?? findFuseSourceFaults(source, known !== undefined, config)
      if (subPath !== undefined) {
        faults.push(
          createOptionFault(
            'sub-path-unsupported',
            'subPath',
            `is ${quoted(subPath)}`,
            `${name} has none, name the directory in "source"`,
          ),
        )
      }
      return [...faults, ...findOptionFaults(name, mountOptions, readFuseRules(program), known === undefined)]
    },

    openSource(host, { source }) {
      const path = getSourcePath(source)
      return path === undefined ? undefined : openNode(host, path, A_DIRECTORY_OR_FILE)
    },

    openTree: (context) => mountStaged(context, (directory, stage) => startProgram(program, context, directory, stage)),
  }
}

/** @param isLocal the program takes only a path of the node; otherwise also a text of its own, such as `bucket` */
function findFuseSourceFaults(source: Source, isLocal: boolean, config: NodeConfig): Fault[] {
  const text = formatSource(source)
  // Other kinds take two leading slashes as a share; a program of the node does not.
  if (text?.startsWith('/')) return findPathFaults(text, config)
  if (isLocal)
    return [
      createOptionFault('source-invalid', 'source', 'names no path of this node', 'write what the program is to show'),
    ]
  if (text === undefined)
    return [createOptionFault('source-invalid', 'source', 'is missing', 'write what the program is to show')]
  // The program would take a leading "-" as an option, and ".." could lead out of the permitted source.
  if (/^[A-Za-z0-9_]\P{Cc}*$/u.test(text) && !/(^|[/:])\.\.?(\/|$)/.test(text)) return []
  return [
    createOptionFault(
      'source-invalid',
      'source',
      `is ${quoted(text)}`,
      `begin it with a letter or a digit, and write no "..", "." or control character`,
    ),
  ]
}

async function startProgram(
  program: string,
  { host, request, source, group, secrets, timeoutSeconds, warn }: MountContext,
  directory: string,
  stage: Stage,
): Promise<void> {
  const { mountOptions, readOnly, fsGroup, secretKeys = {} } = request
  const known = PROGRAMS.get(program)
  const login = known?.login?.(secrets, mountOptions, stage)
  const delivered = known === undefined ? deliverSecrets(secrets, secretKeys, mountOptions, stage) : undefined
  const text = formatSource(request.source) ?? ''
  const own = filterOwnOptions(mountOptions)
  const taken = new Set(own.map(parseOptionName))
  // Permission bits are added only with "grant".
  const isWanted = (name: string) => !taken.has(name) && (fsGroup.access === 'grant' || name !== 'umask')
  const given =
    group === undefined ? [] : listFuseGroupOptions(group).filter((option) => isWanted(parseOptionName(option)))
  // The mount table shows fsname: without it, it would show the path in the staging directory.
  const isNamed = source !== undefined && known !== undefined && !/[,\\]/.test(text)
  const options = [
    ...ALWAYS,
    ...(readOnly ? ['ro'] : []),
    ...own,
    ...given,
    ...(isNamed ? [`fsname=${text}`] : []),
    ...(login?.options ?? delivered?.options ?? []),
  ]
  await host.helpers.run({
    program,
    // The program gets the opened source, even if its path leads elsewhere by then.
    args: [
      source === undefined ? text : stage.show(source.handle, readOnly),
      directory,
      '-o',
      options.join(','),
      ...(login?.args ?? []),
    ],
    ...(login?.input ? { input: login.input } : {}),
    ...(delivered?.secretFile ? { secretFile: delivered.secretFile } : {}),
    ...(delivered ? { environment: delivered.environment } : {}),
    timeoutSeconds,
    secrets: [...secrets.values()],
    leavesDaemon: true,
    warn,
  })
}

function listFuseGroupOptions(group: number): string[] {
  return [`gid=${group}`, 'umask=0007']
}
