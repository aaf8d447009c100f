import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Architecture } from '../../scripts/build/runtime.ts'

const MACHINES = {
  arm64: {
    qemu: 'qemu-aarch64-static',
    sysroot: '/usr/aarch64-linux-gnu',
    debian: 'libc6-arm64-cross',
    interpreter: '/lib/ld-linux-aarch64.so.1',
  },
  x64: {
    qemu: 'qemu-x86_64-static',
    sysroot: '/usr/x86_64-linux-gnu',
    debian: 'libc6-amd64-cross',
    interpreter: '/lib64/ld-linux-x86-64.so.2',
  },
} as const satisfies Record<Architecture, Record<string, string>>

const GLIBC = ['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'librt.so.1']

/** Why nothing can be run for a processor here, with what to do; '' where it can. */
export function lacking(arch: Architecture): string {
  const { sysroot, debian, qemu } = MACHINES[arch]
  if (process.getuid?.() !== 0) return 'it is run in a root directory of its own, which needs root: sudo npm test'
  const isThere = fs.existsSync(`/usr/bin/${qemu}`) && fs.existsSync(`${sysroot}/lib/libc.so.6`)
  return isThere
    ? ''
    : `it was not run, as ${qemu} or glibc for ${arch} is missing: apt-get install qemu-user-static ${debian}`
}

/** A root directory with the emulator, glibc of the other processor, the program and /proc; nothing else. */
export class EmulatedRoot {
  readonly root: string
  readonly #qemu: string

  constructor(arch: Architecture, program: Buffer) {
    const { qemu, sysroot, interpreter } = MACHINES[arch]
    this.root = fs.mkdtempSync(join(tmpdir(), 'modekeep-emulated-'))
    this.#qemu = `/${qemu}`
    fs.copyFileSync(`/usr/bin/${qemu}`, join(this.root, qemu))
    fs.writeFileSync(join(this.root, 'modekeep'), program, { mode: 0o755 })
    for (const directory of ['proc', 'lib', 'tmp', 'srv/data', dirname(interpreter)]) {
      fs.mkdirSync(join(this.root, directory), { recursive: true })
    }
    fs.copyFileSync(join(sysroot, 'lib', basename(interpreter)), join(this.root, interpreter))
    for (const name of GLIBC) fs.copyFileSync(join(sysroot, 'lib', name), join(this.root, dirname(interpreter), name))
    execFileSync('mount', ['-t', 'proc', 'proc', join(this.root, 'proc')])
  }

  run(args: readonly string[]): { status: number | null; output: string } {
    const command = [this.root, this.#qemu, '/modekeep', ...args]
    const { status, stdout, stderr } = spawnSync('/usr/sbin/chroot', command, {
      env: { MODEKEEP_CONFIG: '/config.json' },
      encoding: 'utf8',
      timeout: 600_000,
    })
    return { status, output: `${stdout}${stderr}` }
  }

  remove(): void {
    execFileSync('umount', ['--recursive', join(this.root, 'proc')])
    fs.rmSync(this.root, { recursive: true, force: true })
  }
}
