import { existsSync, fchmodSync, mkdirSync, readFileSync, writeSync } from 'node:fs'
import { execa } from 'execa'
import { createFault } from '../../errors/fault.ts'
import { HELPER_MARK_VARIABLE, HelperError, type HelperInvocation, type HelperRunner } from '../helpers.ts'
import { resolveWithinTimeout } from '../waiting.ts'
import { CHILD_PROCESS_OPTIONS, type ExitStatus, waitForProcessExit } from './child-process.ts'
import { killHelperProcesses, readHelperLeader } from './daemons.ts'
import { HelperOutput } from './helper-output.ts'
import { createSystemCall, requireCallSuccess, writeNameArgument } from './kernel.ts'
import { closeDescriptor, deferDescriptorClose } from './open.ts'
import { signalProcessGroup } from './processes.ts'
import { findProgram, SYSTEM_PROGRAM_DIRECTORIES } from './programs.ts'

type HelperCommand = Pick<HelperInvocation, 'program' | 'args'>
type ProgramInvocation = Omit<HelperInvocation, 'args'>

const SIGTERM_TIMEOUT_MS = 2000
// systemd-run only sends a request to systemd, which replies at once.
const SCOPE_START_TIMEOUT_SECONDS = 5

/** sd_booted(3) */
const hasSystemdBooted = () => existsSync('/run/systemd/system')

/**
 * @param path directories in which programs are looked up, and the programs' PATH
 * @param hasSystemd reports whether systemd runs here
 */
export function createLinuxHelperRunner(
  path: readonly string[] = SYSTEM_PROGRAM_DIRECTORIES,
  hasSystemd = hasSystemdBooted,
): HelperRunner {
  return {
    async run(invocation) {
      const command = await resolveHelperCommand(invocation, path, hasSystemd)
      const secretFile = invocation.secretFile && createMemoryFile(invocation.secretFile)
      using _ = secretFile === undefined ? undefined : deferDescriptorClose(secretFile)
      await runHelperProgram(command, invocation, path, secretFile)
    },
  }
}

/** Moves a helper's daemon out of kubelet's service or the CSI server's container, because it must outlive both. */
async function resolveHelperCommand(
  invocation: HelperInvocation,
  path: readonly string[],
  hasSystemd: () => boolean,
): Promise<HelperCommand> {
  const plain = { program: findProgram(invocation.program, path), args: invocation.args }
  if (!invocation.leavesDaemon) return plain
  const isScoped = hasSystemd()
  try {
    const wrap = isScoped ? wrapInSystemdScope : createControlGroupWrapper(prepareNodeControlGroups())
    const resolve = (command: HelperCommand): HelperCommand => {
      const { program, args } = wrap(command, createUniqueName())
      return { program: findProgram(program, path), args }
    }
    // The trial runs a program without effect. If the helper itself failed, modekeep could not know whether it had
    // started.
    const trial = resolve({ program: findProgram('true', path), args: [] })
    await runHelperProgram(
      trial,
      { program: isScoped ? 'systemd-run' : 'sh', timeoutSeconds: SCOPE_START_TIMEOUT_SECONDS, secrets: [] },
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
function createControlGroupWrapper(groups: readonly string[]) {
  return ({ program, args }: HelperCommand): HelperCommand => ({
    program: 'sh',
    args: createControlGroupArguments(groups, [program, ...args]),
  })
}

/**
 * Returns the command that starts a helper in its own scope of systemd. A restart of kubelet ends all processes in
 * kubelet's service, but none in this scope.
 * @param unique distinguishes this scope from others of this boot
 */
export function wrapInSystemdScope({ program, args }: HelperCommand, unique: string): HelperCommand {
  const unit = `modekeep-fuse-${unique.replaceAll(/[^A-Za-z0-9]/g, '-')}`
  const scope = ['--scope', '--quiet', '--collect', `--unit=${unit}`, '--', program]
  return { program: 'systemd-run', args: [...scope, ...args] }
}

let uniqueNameCount = 0

function createUniqueName(): string {
  return `${process.pid}-${performance.timeOrigin}-${++uniqueNameCount}`
}

async function runHelperProgram(
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
    [HELPER_MARK_VARIABLE]: mark,
  })
  const exitStatus = await resolveWithinTimeout(invocation.timeoutSeconds * 1000, exited)
  if (exitStatus?.code === 0) {
    if (!invocation.leavesDaemon) await killHelperProcesses(leader, mark)
    return output.finish()
  }
  if (exitStatus === undefined) {
    signalProcessGroup(leader.pid, 'SIGTERM')
    await resolveWithinTimeout(SIGTERM_TIMEOUT_MS, exited)
  }
  const isEnded = await killHelperProcesses(leader, mark)
  await output.finish()
  const suffix = isEnded ? '' : ', and the kernel does not let it end'
  throw new HelperError(
    createFault(
      'program-failed',
      `${invocation.program} ${describeHelperFailure(invocation, exitStatus)}${suffix}`,
      undefined,
      output.text || 'it said nothing',
    ),
  )
}

function describeHelperFailure({ timeoutSeconds }: ProgramInvocation, exitStatus: ExitStatus | undefined): string {
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
    ...CHILD_PROCESS_OPTIONS,
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
  const exited = waitForProcessExit(child.nodeChildProcess)
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
  return {
    leader: readHelperLeader(child.pid),
    exited,
    output: new HelperOutput([child.stdout, child.stderr], secrets),
  }
}

/** Below the root of cgroup2: a group with controlled children may have no processes of its own (cgroups(7)). */
const FUSE_CONTROL_GROUP = 'modekeep-fuse'

/**
 * Returns the files that move a process from its control groups into the node's. A container runtime kills all
 * processes in its container's groups.
 * @param mountinfo of /proc/self/mountinfo, which may also list a container's own view of its groups
 * @param top directory of the node's groups
 * @throws if a group cannot be created
 */
export function prepareNodeControlGroups(
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
    mkdirSync(`${mountPoint}/${FUSE_CONTROL_GROUP}`, { recursive: true })
    return [`${mountPoint}/${FUSE_CONTROL_GROUP}/cgroup.procs`]
  })
}

const ENTER_CONTROL_GROUPS_SCRIPT = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 1; shift; done; shift; exec "$@"'

/** Returns the arguments of a shell that starts a command in these groups. All its later children are in them too. */
export function createControlGroupArguments(files: readonly string[], command: readonly string[]): string[] {
  return ['-c', ENTER_CONTROL_GROUPS_SCRIPT, 'sh', ...files, '--', ...command]
}

const memfdCreate = createSystemCall('memfd_create')

const MFD_CLOEXEC = 1

/**
 * Creates a nameless file in memory. The kernel frees it after the last process that has it open, also after a crash.
 * Close-on-exec limits it to the child that receives it.
 * @returns its file descriptor
 */
function createMemoryFile(content: Uint8Array): number {
  const fd = requireCallSuccess(memfdCreate(writeNameArgument('modekeep'), MFD_CLOEXEC), 'memfd_create', 'a secret')
  try {
    fchmodSync(fd, 0o400)
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at)
    return fd
  } catch (error) {
    closeDescriptor(fd)
    throw error
  }
}
