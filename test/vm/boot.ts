import * as fs from 'node:fs'
import { runConfined } from '../helpers/own-namespaces.ts'

/** What starts a kernel. */
export interface GuestMachine {
  /** Has `usr`: the program that starts the kernel, with the C library that it was linked against. */
  programs: string
  /** The program sees these directories of the machine at /kernel and /host. /host becomes the guest's root. */
  kernel: string
  host: string
  /** Writes the initial RAM disk of the guest. */
  writeInitrd: (file: string) => void
  /** The program and its arguments. The initial RAM disk is /exchange/initrd. */
  createCommand: (parameters: readonly string[]) => string[]
}

/** What a guest runs. */
export interface GuestRun {
  machine: GuestMachine
  /** A shell command. /exchange in the guest is `exchange` on the machine. */
  command: string
  /** More parameters of the kernel, like those that choose a security module. */
  parameters: readonly string[]
  /** An empty directory of this run, in which results and the kernel's console are left. */
  exchange: string
  timeoutMs: number
}

export const GUEST_MEMORY = '2048M'

// The program runs in a root with its own C library. Its files in /tmp and /var/tmp, like the memory of user-mode Linux and changed
// sectors of QEMU's disks, are in a tmpfs. All of it is in namespaces of the run, so nothing is left of the guest however the run ends.
const ENTER = `
set -e
mount -t tmpfs -o mode=0755,size=100% guest "$ROOT"
for directory in usr lib lib64; do
  if [ -d "$PROGRAMS/$directory" ]; then
    mkdir "$ROOT/$directory"
    mount --bind "$PROGRAMS/$directory" "$ROOT/$directory"
  else ln -s "usr/$directory" "$ROOT/$directory"
  fi
done
mkdir -p "$ROOT/kernel" "$ROOT/host" "$ROOT/exchange" "$ROOT/proc" "$ROOT/tmp" "$ROOT/var/tmp" "$ROOT/dev"
mount --bind "$KERNEL" "$ROOT/kernel"
mount --bind "$HOST" "$ROOT/host"
mount --bind "$EXCHANGE" "$ROOT/exchange"
mount -t proc proc "$ROOT/proc"
mount --bind /dev "$ROOT/dev"
exec env -i PATH="$PATH" TMPDIR=/tmp HOME=/tmp timeout --kill-after=5 "$LIMIT" chroot "$ROOT" "$@" </dev/null`

/** A signal, such as Ctrl-C, ended the guest and ends the run. */
export class InterruptedError extends Error {}

/** The exit status of a command that `runConfined` ended for a signal. */
const INTERRUPTED_STATUS = 130

/**
 * Boots a guest, runs a command in it, and waits until it is off.
 * @param print gets each line of the guest's console
 * @returns the command's exit status; undefined if the guest ended without one
 * @throws {InterruptedError}
 */
export async function runInGuest(run: GuestRun, print: (line: string) => void): Promise<number | undefined> {
  const { machine, command, parameters, exchange, timeoutMs } = run
  const root = `${exchange}.root`
  fs.mkdirSync(root)
  try {
    machine.writeInitrd(`${exchange}/initrd`)
    fs.copyFileSync(`${import.meta.dirname}/guest/run.sh`, `${exchange}/run.sh`)
    fs.writeFileSync(`${exchange}/command.sh`, `${command}\n`)
    const unshare = ['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child']
    const ended = await runConfined(
      [...unshare, 'sh', '-c', ENTER, 'sh', ...machine.createCommand(['quiet', 'panic=-1', ...parameters])],
      {
        ...process.env,
        ROOT: root,
        PROGRAMS: machine.programs,
        KERNEL: machine.kernel,
        HOST: machine.host,
        EXCHANGE: exchange,
        LIMIT: String(Math.ceil(timeoutMs / 1000)),
      },
      'SIGKILL',
      // A serial port ends lines with a carriage return too.
      (line) => print(line.replace(/\r+$/, '')),
    )
    if (ended === INTERRUPTED_STATUS) throw new InterruptedError('interrupted')
    const status = `${exchange}/status`
    return fs.existsSync(status) ? Number(fs.readFileSync(status, 'utf8')) : undefined
  } finally {
    fs.rmdirSync(root)
  }
}
