import { GUEST_MEMORY, type GuestMachine } from './boot.ts'
import { writeInitrd } from './initrd.ts'
import type { ProvidedKernel } from './kernels.ts'

/**
 * User-mode Linux, a kernel that is a program. The guest's root is the machine's own.
 * @param busybox a statically linked one
 */
export function createUmlMachine({ root }: ProvidedKernel, busybox: string): GuestMachine {
  return {
    programs: root,
    kernel: root,
    host: '/',
    writeInitrd: (file) => writeInitrd(file, busybox),
    createCommand: (parameters) => [
      '/usr/bin/linux.uml',
      `mem=${GUEST_MEMORY}`,
      'initrd=/exchange/initrd',
      'con=null',
      'con0=null,fd:1',
      'ssl=null',
      // Several times as fast as ptrace, since Linux 6.16. Older kernels ignore it.
      'seccomp=on',
      ...parameters,
    ],
  }
}
