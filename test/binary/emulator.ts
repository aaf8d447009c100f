import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Architecture } from '../../scripts/build/runtime.ts'

const EMULATORS = { arm64: 'qemu-aarch64-static', x64: 'qemu-x86_64-static' } as const satisfies Record<
  Architecture,
  string
>

/** Why nothing can be run for a processor here, with what to do; '' where it can. */
export function lacking(arch: Architecture): string {
  if (process.getuid?.() !== 0) return 'it is run in a root directory of its own, which needs root: sudo npm test'
  const qemu = EMULATORS[arch]
  return fs.existsSync(`/usr/bin/${qemu}`)
    ? ''
    : `it was not run, as ${qemu} is missing: apt-get install qemu-user-static`
}

/** A root directory with the emulator, the program and /proc; nothing else. */
export class EmulatedRoot {
  readonly root: string
  readonly #qemu: string

  constructor(arch: Architecture, program: Buffer) {
    const qemu = EMULATORS[arch]
    this.root = fs.mkdtempSync(join(tmpdir(), 'modekeep-emulated-'))
    this.#qemu = `/${qemu}`
    fs.copyFileSync(`/usr/bin/${qemu}`, join(this.root, qemu))
    fs.writeFileSync(join(this.root, 'modekeep'), program, { mode: 0o755 })
    for (const directory of ['proc', 'tmp', 'srv/data']) fs.mkdirSync(join(this.root, directory), { recursive: true })
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
