import { existsSync, fchmodSync, mkdirSync, readFileSync, writeSync } from 'node:fs'
import { execa } from 'execa'
import { createFault } from '../../errors/fault.ts'
import { HELPER_MARK, HelperError, type HelperInvocation, type Helpers } from '../helpers.ts'
import { resolveWithin } from '../waiting.ts'
import { CHILD_OPTIONS, type ExitStatus, waitUntilExit } from './child-process.ts'
import { endAll, readLeader } from './daemons.ts'
import { HelperOutput } from './helper-output.ts'
import { putName, requireSuccess, systemCall } from './kernel.ts'
import { close, deferCloseFd } from './open.ts'
import { signalGroup } from './processes.ts'
import { findProgram, SYSTEM_PATH } from './programs.ts'

type HelperCommand = Pick<HelperInvocation, 'program' | 'args'>
type ProgramInvocation = Omit<HelperInvocation, 'args'>

const TERM_TIMEOUT_MS = 2000
// systemd-run only sends a request to systemd, which replies at once.
const SCOPE_SECONDS = 5

/** sd_booted(3) */
const hasSystemdBooted = () => existsSync('/run/systemd/system')

/**
 * @param path directories in which programs are looked up, and the programs' PATH
 * @param hasSystemd reports whether systemd runs here
 */
export function linuxHelpers(path: readonly string[] = SYSTEM_PATH, hasSystemd = hasSystemdBooted): Helpers {
  return {
    async run(invocation) {
      const command = await resolveCommand(invocation, path, hasSystemd)
      const secretFile = invocation.secretFile && openMemoryFile(invocation.secretFile)
      using _ = secretFile === undefined ? undefined : deferCloseFd(secretFile)
      await runProgram(command, invocation, path, secretFile)
    },
  }
}

/** Moves a helper's daemon out of kubelet's service or the CSI server's container, because it must outlive both. */
async function resolveCommand(
  invocation: HelperInvocation,
  path: readonly string[],
  hasSystemd: () => boolean,
): Promise<HelperCommand> {
  const plain = { program: findProgram(invocation.program, path), args: invocation.args }
  if (!invocation.leavesDaemon) return plain
  const isScoped = hasSystemd()
  try {
    const wrap = isScoped ? wrapInScope : createGroupWrapper(prepareNodeGroups())
    const resolve = (command: HelperCommand): HelperCommand => {
      const { program, args } = wrap(command, createUniqueName())
      return { program: findProgram(program, path), args }
    }
    // The trial runs a program without effect. If the helper itself failed, modekeep could not know whether it had
    // started.
    const trial = resolve({ program: findProgram('true', path), args: [] })
    await runProgram(
      trial,
      { program: isScoped ? 'systemd-run' : 'sh', timeoutSeconds: SCOPE_SECONDS, secrets: [] },
      path,
    )
    return resolve(plain)
  } catch (error) {
    const reason = (error as Error).message
    const consequence = isScoped
      ? "gets no scope of systemd's, so that a restart of kubelet may end it"
      : 'stays in the control groups of its caller, so that the end of a container may end it'
    invocation.warn?.(`${invocation.program} ${consequence} (${reason})`, 'program-failed')
    return plain
  }
}

/** Without systemd, the helper enters the node's own control groups. */
function createGroupWrapper(groups: readonly string[]) {
  return ({ program, args }: HelperCommand): HelperCommand => ({
    program: 'sh',
    args: createGroupArguments(groups, [program, ...args]),
  })
}

/**
 * Returns the command that starts a helper in its own scope of systemd. A restart of kubelet ends all processes in
 * kubelet's service, but none in this scope.
 * @param unique distinguishes this scope from others of this boot
 */
export function wrapInScope({ program, args }: HelperCommand, unique: string): HelperCommand {
  const unit = `modekeep-fuse-${unique.replaceAll(/[^A-Za-z0-9]/g, '-')}`
  const scope = ['--scope', '--quiet', '--collect', `--unit=${unit}`, '--', program]
  return { program: 'systemd-run', args: [...scope, ...args] }
}

let nameCount = 0

function createUniqueName(): string {
  return `${process.pid}-${performance.timeOrigin}-${++nameCount}`
}

async function runProgram(
  command: HelperCommand,
  invocation: ProgramInvocation,
  path: readonly string[],
  secretFile?: number,
): Promise<void> {
  const mark = createUniqueName()
  const { leader, exited, output } = await startHelper(command, invocation, secretFile, {
    ...invocation.environment,
    PATH: path.join(':'),
    LC_ALL: 'C',
    [HELPER_MARK]: mark,
  })
  const exitStatus = await resolveWithin(invocation.timeoutSeconds * 1000, exited)
  if (exitStatus?.code === 0) {
    if (!invocation.leavesDaemon) await endAll(leader, mark)
    return output.finish()
  }
  if (exitStatus === undefined) {
    signalGroup(leader.pid, 'SIGTERM')
    await resolveWithin(TERM_TIMEOUT_MS, exited)
  }
  const isEnded = await endAll(leader, mark)
  await output.finish()
  const suffix = isEnded ? '' : ', and the kernel does not let it end'
  throw new HelperError(
    createFault(
      'program-failed',
      `${invocation.program} ${describeFailure(invocation, exitStatus)}${suffix}`,
      undefined,
      output.text || 'it said nothing',
    ),
  )
}

function describeFailure({ timeoutSeconds }: ProgramInvocation, exitStatus: ExitStatus | undefined): string {
  if (exitStatus === undefined) {
    return `did not end within ${timeoutSeconds} s (helperTimeoutSeconds in the node's modekeep configuration) and was ended`
  }
  return exitStatus.signal === null ? `failed with exit status ${exitStatus.code}` : `was ended by ${exitStatus.signal}`
}

async function startHelper(
  { program: file, args }: HelperCommand,
  { program, input, secrets }: ProgramInvocation,
  secretFile: number | undefined,
  env: Record<string, string>,
) {
  const child = execa(file, [...args], {
    ...CHILD_OPTIONS,
    env,
    ...(input === undefined ? {} : { input }),
    // execa's types only accept descriptors up to 9.
    stdio: [
      input === undefined ? 'ignore' : 'pipe',
      'pipe',
      'pipe',
      ...(secretFile === undefined ? [] : [secretFile as 3]),
    ],
  } as const)
  const exited = waitUntilExit(child.nodeChildProcess)
  if (child.pid === undefined) {
    const { code } = await child
    throw new HelperError(
      createFault(
        'program-missing',
        `${program} could not be started (${code ?? 'no reason is known'})`,
        'install its package again',
      ),
    )
  }
  return { leader: readLeader(child.pid), exited, output: new HelperOutput([child.stdout, child.stderr], secrets) }
}

/** Below the root of cgroup2: a group with controlled children may have no processes of its own (cgroups(7)). */
const LEAF_GROUP = 'modekeep-fuse'

/**
 * Returns the files that move a process from its control groups into the node's. A container runtime kills all
 * processes in its container's groups.
 * @param mountinfo of /proc/self/mountinfo, which may also list a container's own view of its groups
 * @param top directory of the node's groups
 * @throws if a group cannot be created
 */
export function prepareNodeGroups(
  mountinfo = readFileSync('/proc/self/mountinfo', 'utf8'),
  top = '/sys/fs/cgroup',
): string[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [left = '', right = ''] = line.split(' - ')
    const [, , , , mountPoint = ''] = left.split(' ')
    if (mountPoint !== top && !mountPoint.startsWith(`${top}/`)) return []
    const [type] = right.split(' ')
    if (type === 'cgroup') return [`${mountPoint}/cgroup.procs`]
    if (type !== 'cgroup2') return []
    mkdirSync(`${mountPoint}/${LEAF_GROUP}`, { recursive: true })
    return [`${mountPoint}/${LEAF_GROUP}/cgroup.procs`]
  })
}

const ENTER_SCRIPT = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done; shift; exec "$@"'

/** Returns the arguments of a shell that starts a command in these groups. All its later children are in them too. */
export function createGroupArguments(files: readonly string[], command: readonly string[]): string[] {
  return ['-c', ENTER_SCRIPT, 'sh', ...files, '--', ...command]
}

const memfdCreate = systemCall('memfd_create')

const MFD_CLOEXEC = 1

/**
 * Creates a nameless file in memory. The kernel frees it after the last process that has it open, also after a crash.
 * Close-on-exec limits it to the child that receives it.
 * @returns its file descriptor
 */
function openMemoryFile(content: Uint8Array): number {
  const fd = requireSuccess(memfdCreate(putName('modekeep'), MFD_CLOEXEC), 'memfd_create', 'a secret')
  try {
    fchmodSync(fd, 0o400)
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at)
    return fd
  } catch (error) {
    close(fd)
    throw error
  }
}
