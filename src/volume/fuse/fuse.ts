import { quoted } from '../../refusal/refusal.ts'
import { allowedFaults } from '../../request/allowed-sources.ts'
import type { MountRequest } from '../../request/mount-request.ts'
import { type Source, sourcePath, sourceText } from '../../request/source.ts'
import type { MountContext, OpenedSource, VolumeKind } from '../kind/kind.ts'
import { optionFaults, ownOptions } from '../kind/options.ts'
import { holdsOwnRecords, openNodeFile, pathFaults } from '../kind/source-path.ts'
import { mountStaged, type Stage } from '../kind/staged.ts'
import { fuseRules, isKnown, withoutRisky } from './fuse-options.ts'
import { sshLogin, sshSourceFaults } from './sshfs.ts'

const PREFIX = 'fuse.'
const PROGRAM = /^[a-z0-9][a-z0-9._-]*$/

/** The kernel checks modes for everybody: without it, each process of the pod would have what the daemon, as root, has. */
const ALWAYS = ['allow_other', 'default_permissions']

/** A FUSE program of the node, by its fsType: `fuse.sshfs`. Undefined for what is none. */
export function fuse(fsType: string): VolumeKind | undefined {
  const program = fsType.startsWith(PREFIX) ? fsType.slice(PREFIX.length) : ''
  return PROGRAM.test(program) ? kindFor(fsType, program) : undefined
}

/** Where one program differs from all others; which of its options are safe is in fuse-options.ts. */
interface Program {
  sourceFaults(source: Source): string[]
  /** How it proves who it is, by secrets. */
  login?: typeof sshLogin
}

const LOCAL: Program = { sourceFaults: localFaults }
const PROGRAMS: ReadonlyMap<string, Program> = new Map([
  ['sshfs', { sourceFaults: sshSourceFaults, login: sshLogin }],
  ['bindfs', LOCAL],
  ['squashfuse', LOCAL],
])
const ANY_OTHER: Program = {
  sourceFaults: (source) => (isPath(source) ? pathFaults(sourceText(source) ?? '') : textFaults(source)),
}

function kindFor(name: string, program: string): VolumeKind {
  const { sourceFaults, login } = PROGRAMS.get(program) ?? ANY_OTHER
  return {
    name,
    persistent: true,
    walk: 'its daemon decides about groups',
    root: 'text',
    hasDaemon: true,
    ...(login && { usesSecrets: true }),
    groupOptions,
    optionRules: (config) => fuseRules(program, config),

    faults(request, config) {
      const { source, subPath, mountOptions } = request
      const faults = sourceFaults(source)
      if (faults.length === 0) faults.push(...allowedFaults(source, name, config))
      const path = sourcePath(source)
      if (path !== undefined && holdsOwnRecords(path, config)) {
        faults.push(`option "source" is ${quoted(path)}: it holds modekeep's own records, which no pod may see`)
      }
      if (subPath !== undefined) {
        faults.push(`option "subPath" is ${quoted(subPath)}: ${name} has none, name the directory in "source"`)
      }
      const rules = fuseRules(program, config)
      return [...faults, ...optionFaults(name, mountOptions, rules, withoutRisky(name, rules, config))]
    },

    openSource(host, { source }) {
      const path = sourcePath(source)
      return path === undefined ? undefined : { ...openNodeFile(host, path), path }
    },

    openTree: (context) => mountStaged(context, (directory, stage) => start(program, login, context, directory, stage)),
  }
}

/** Two slashes make a share of it elsewhere; a program of the node takes none. */
function isPath({ type }: Source): boolean {
  return type === 'local' || type === 'share'
}

function localFaults(source: Source): string[] {
  if (isPath(source)) return pathFaults(sourceText(source) ?? '')
  return ['option "source" names no path of this node: write what the program is to show']
}

/** Faults of a source that only its program understands: `bucket`, `remote:bucket/directory`. */
function textFaults(source: Source): string[] {
  const text = sourceText(source)
  if (text === undefined) return ['option "source" is missing: write what the program is to show']
  // A leading "-" would be an option; "..", as the program may understand it, would lead out of what is allowed.
  if (/^[A-Za-z0-9_]\P{Cc}*$/u.test(text) && !/(^|[/:])\.\.?(\/|$)/.test(text)) return []
  return [
    `option "source" is ${quoted(text)}: begin it with a letter or a digit, and write no "..", "." or control character`,
  ]
}

async function start(
  program: string,
  loginOf: Program['login'],
  { host, request, source, group, secrets, timeoutSeconds, warn }: MountContext,
  directory: string,
  stage: Stage,
): Promise<void> {
  const { mountOptions, readOnly, groupAccess } = request
  const login = loginOf?.(secrets, mountOptions, stage)
  const shown = showSource(program, source, stage, request)
  const wanted = ownOptions(mountOptions)
  const isTaken = (option: string) => wanted.some((own) => nameOf(own) === nameOf(option))
  // Without "grant" no permission bit is added.
  const isWanted = (option: string) => !isTaken(option) && (groupAccess === 'grant' || nameOf(option) !== 'umask')
  const given = group === undefined ? [] : groupOptions(group).filter(isWanted)
  const options = [
    ...ALWAYS,
    ...(readOnly ? ['ro'] : []),
    ...wanted,
    ...given,
    ...shown.options,
    ...(login?.options ?? []),
  ]
  await host.helpers.run({
    program,
    args: [...shown.args, directory, '-o', options.join(','), ...(login?.args ?? [])],
    ...(login?.input ? { input: login.input } : {}),
    timeoutSeconds,
    secrets: [...secrets.values()],
    leavesDaemon: true,
    warn,
  })
}

/** What was opened is what the program finds, whatever its path leads to by then. */
function showSource(
  program: string,
  source: OpenedSource | undefined,
  stage: Stage,
  { source: asked, readOnly }: MountRequest,
) {
  const text = sourceText(asked)
  if (source === undefined || text === undefined) return { args: text === undefined ? [] : [text], options: [] }
  // What the mount table says: else it would be the staging directory's.
  const options = !isKnown(program) || /[,\\]/.test(text) ? [] : [`fsname=${text}`]
  return { args: [stage.show(source.handle, readOnly)], options }
}

function groupOptions(group: number): string[] {
  return [`gid=${group}`, 'umask=0007']
}

const nameOf = (option: string) => option.split('=', 1)[0]
