import { DIRECTORY, FILE_TYPE, REGULAR } from '../../host/host.ts'
import { quoted } from '../../refusal/refusal.ts'
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

/** The kernel checks modes for everybody: without it, each process of the pod has what the daemon, as root, has. */
const ALWAYS = ['allow_other', 'default_permissions']

const A_DIRECTORY_OR_FILE: SourceRequirement = {
  // A FIFO, a socket or a device is refused.
  fault: ({ mode }) =>
    [DIRECTORY, REGULAR].includes(mode & FILE_TYPE) ? undefined : 'is neither a directory nor a file: name one',
}

/** A FUSE program of the node, by its fsType: `fuse.sshfs`. Undefined for what is none. */
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
        faults.push(`option "subPath" is ${quoted(subPath)}: ${name} has none, name the directory in "source"`)
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

/** @param isLocal its program takes nothing but a path of the node; else also what it alone understands: `bucket` */
function findFuseSourceFaults(source: Source, isLocal: boolean, config: NodeConfig): string[] {
  const text = formatSource(source)
  // Two slashes make a share of it elsewhere; a program of the node takes none.
  if (text?.startsWith('/')) return findPathFaults(text, config)
  if (isLocal) return ['option "source" names no path of this node: write what the program is to show']
  if (text === undefined) return ['option "source" is missing: write what the program is to show']
  // A leading "-" would be an option; "..", as the program may understand it, would lead out of what is allowed.
  if (/^[A-Za-z0-9_]\P{Cc}*$/u.test(text) && !/(^|[/:])\.\.?(\/|$)/.test(text)) return []
  return [
    `option "source" is ${quoted(text)}: begin it with a letter or a digit, and write no "..", "." or control character`,
  ]
}

async function startProgram(
  program: string,
  { host, request, source, group, secrets, timeoutSeconds, warn }: MountContext,
  directory: string,
  stage: Stage,
): Promise<void> {
  const { mountOptions, readOnly, groupAccess, secretKeys = {} } = request
  const known = PROGRAMS.get(program)
  const login = known?.login?.(secrets, mountOptions, stage)
  const delivered = known === undefined ? deliverSecrets(secrets, secretKeys, mountOptions, stage) : undefined
  const text = formatSource(request.source) ?? ''
  const own = filterOwnOptions(mountOptions)
  const taken = new Set(own.map(parseOptionName))
  // Without "grant" no permission bit is added.
  const isWanted = (name: string) => !taken.has(name) && (groupAccess === 'grant' || name !== 'umask')
  const given =
    group === undefined ? [] : listFuseGroupOptions(group).filter((option) => isWanted(parseOptionName(option)))
  // What the mount table says: else it would be the staging directory's.
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
    // What was opened is what the program finds, whatever its path leads to by then.
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
