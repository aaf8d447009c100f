import type { Architecture } from '../../scripts/build/runtime.ts'

/** A kernel of the lab: that of Debian's packages of one suite, user-mode-linux and linux-image. */
export interface LabKernel {
  /** The beginning of its release. */
  version: string
  suite: 'bullseye' | 'bookworm' | 'trixie' | 'sid'
  /** modekeep refuses to mount on it. Only the list of QEMU's guests runs there. */
  isTooOld?: true
}

/** Oldest first. Debian has none from 5.12 to 6.0: what those kernels lack beside 6.1 is not shown. */
export const LAB_KERNELS: readonly LabKernel[] = [
  { version: '5.10', suite: 'bullseye', isTooOld: true },
  { version: '6.1', suite: 'bookworm' },
  { version: '6.12', suite: 'trixie' },
  { version: '7.2', suite: 'sid' },
]

/** Debian's package of kernels that are programs. */
export const UML_PACKAGE = 'user-mode-linux'

/** A kernel in the cache. */
export interface ProvidedKernel extends LabKernel {
  /** As tables name it: the version, and for a kernel of linux-image the processor that QEMU emulates for it. */
  name: string
  arch: Architecture
  /** Has the kernel and its modules. */
  root: string
  packageName: string
  packageVersion: string
}
