import * as fs from 'node:fs'
import { basename } from 'node:path'
import type { Architecture } from '../../scripts/build/runtime.ts'
import { GUEST_MEMORY, type GuestMachine } from './boot.ts'
import type { DebianKernel, EmulatorFiles } from './debian-kernels.ts'
import { writeInitrd } from './initrd.ts'

/** What differs between processors. */
const PROCESSORS = {
  x64: {
    program: 'qemu-system-x86_64',
    machine: 'q35',
    cpu: 'max',
    parameters: ['console=ttyS0', 'edd=off', 'nokaslr'],
  },
  arm64: { program: 'qemu-system-aarch64', machine: 'virt', cpu: 'cortex-a72', parameters: ['console=ttyAMA0'] },
} as const satisfies Record<Architecture, object>

/** Modules of the directories that the machine shares with the guest. Some kernels have one of them built in. */
const SHARE_MODULES = ['virtio_pci', '9pnet_virtio', '9p']

/** QEMU without KVM: it translates the kernel's instructions (TCG). The guest has a root of a few files, and blank disks. */
export function createQemuMachine(kernel: DebianKernel, { programs, disks }: EmulatorFiles): GuestMachine {
  const { program, machine, cpu, parameters: ownParameters } = PROCESSORS[kernel.arch]
  return {
    programs,
    kernel: kernel.root,
    host: kernel.guestRoot,
    writeInitrd: (file) => {
      const modules = `lib/modules/${kernel.release}`
      const read = (name: string) => fs.readFileSync(`${kernel.root}/${modules}/${name}`)
      const names = selectModuleFiles(read('modules.dep').toString(), SHARE_MODULES)
      const files = ['modules.dep', 'modules.builtin', ...names]
      writeInitrd(
        file,
        `${kernel.guestRoot}/bin/busybox`,
        new Map(files.map((name) => [`${modules}/${name}`, read(name)])),
      )
    },
    createCommand: (parameters) => [
      `/usr/bin/${program}`,
      ...['-machine', machine, '-cpu', cpu, '-accel', 'tcg,thread=multi', '-smp', '2', '-m', GUEST_MEMORY],
      ...['-nodefaults', '-no-reboot', '-display', 'none', '-serial', 'stdio'],
      ...['-kernel', '/kernel/vmlinuz', '-initrd', '/exchange/initrd'],
      ...['-append', [...ownParameters, ...parameters].join(' ')],
      ...createShare('host', '/host', 'readonly=on'),
      ...createShare('modules', '/kernel/lib/modules', 'readonly=on'),
      ...createShare('exchange', '/exchange'),
      ...disks.flatMap((disk) => ['-drive', `file=/${disk},format=raw,if=virtio,snapshot=on`]),
    ],
  }
}

function createShare(tag: string, path: string, ...options: string[]): string[] {
  const share = ['local', `path=${path}`, `mount_tag=${tag}`, 'security_model=none', 'multidevs=remap', ...options]
  return ['-virtfs', share.join()]
}

/**
 * Chooses modules and all that they depend on.
 * @param dependencies the text of modules.dep (depmod(8))
 * @returns their paths, as that text has them
 */
export function selectModuleFiles(dependencies: string, names: readonly string[]): string[] {
  const lines = dependencies.split('\n').filter(Boolean)
  const wanted = new Set<string>()
  for (const line of lines) {
    const [path = '', needed = ''] = line.split(':')
    if (!names.includes(readModuleName(path))) continue
    for (const file of [path, ...needed.split(' ').filter(Boolean)]) wanted.add(file)
  }
  return [...wanted]
}

/** The name of a module's file without what it ends with, which is .ko, or .ko.xz for a compressed one. */
const readModuleName = (path: string) => basename(path).replace(/\.ko.*$/, '')
