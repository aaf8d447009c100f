import * as fs from 'node:fs'
import { runConfined } from '../helpers/own-namespaces.ts'
import { writeInitrd } from './initrd.ts'
import type { ProvidedKernel } from './provide.ts'

/** What a guest runs. */
export interface GuestRun {
  kernel: ProvidedKernel
  /** A statically linked busybox. */
  busybox: string
  /** A shell command. /exchange in the guest is `exchange` on the machine. */
  command: string
  /** More parameters of the kernel, like those that choose a security module. */
  parameters: readonly string[]
  /** An empty directory of this run, in which results and the kernel's console are left. */
  exchange: string
  timeoutMs: number
}

const GUEST_MEMORY = '2048M'

// The kernel runs in a root with its own C library. Its memory is a file in /tmp of that root, which is a tmpfs. All of it is
// in namespaces of the run, so nothing is left of the guest however the run ends.
const ENTER = `
set -e
mount -t tmpfs -o mode=0755,size=100% guest "$ROOT"
for directory in usr lib lib64; do
  if [ -d "$KERNEL/$directory" ]; then
    mkdir "$ROOT/$directory"
    mount --bind "$KERNEL/$directory" "$ROOT/$directory"
  else ln -s "usr/$directory" "$ROOT/$directory"
  fi
done
mkdir "$ROOT/host" "$ROOT/exchange" "$ROOT/proc" "$ROOT/tmp" "$ROOT/dev"
mount --bind / "$ROOT/host"
mount --bind "$EXCHANGE" "$ROOT/exchange"
mount -t proc proc "$ROOT/proc"
mount --bind /dev "$ROOT/dev"
exec env -i PATH="$PATH" TMPDIR=/tmp HOME=/tmp timeout --kill-after=5 "$LIMIT" chroot "$ROOT" /usr/bin/linux.uml "$@"`

/**
 * Boots a guest, runs a command in it, and waits until it is off.
 * @param print gets each line of the guest's console
 * @returns the command's exit status; undefined if the guest ended without one
 */
export async function runInGuest(run: GuestRun, print: (line: string) => void): Promise<number | undefined> {
  const { kernel, busybox, command, parameters, exchange, timeoutMs } = run
  const root = `${exchange}.root`
  fs.mkdirSync(root)
  try {
    writeInitrd(`${exchange}/initrd`, busybox)
    fs.copyFileSync(`${import.meta.dirname}/guest/run.sh`, `${exchange}/run.sh`)
    fs.writeFileSync(`${exchange}/command.sh`, `${command}\n`)
    const kernelArguments = [
      `mem=${GUEST_MEMORY}`,
      'initrd=/exchange/initrd',
      'con=null',
      'con0=null,fd:1',
      'ssl=null',
      'quiet',
      'panic=-1',
      // Several times as fast as ptrace, since Linux 6.16. Older kernels ignore it.
      'seccomp=on',
      ...parameters,
    ]
    const unshare = ['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child']
    await runConfined(
      [...unshare, 'sh', '-c', ENTER, 'sh', ...kernelArguments],
      {
        ...process.env,
        ROOT: root,
        KERNEL: kernel.root,
        EXCHANGE: exchange,
        LIMIT: String(Math.ceil(timeoutMs / 1000)),
      },
      'SIGKILL',
      print,
    )
    const status = `${exchange}/status`
    return fs.existsSync(status) ? Number(fs.readFileSync(status, 'utf8')) : undefined
  } finally {
    fs.rmdirSync(root)
  }
}
