/** A kernel of the lab: Debian's package user-mode-linux of one suite. */
export interface LabKernel {
  /** The beginning of its release. */
  version: string
  suite: 'bookworm' | 'trixie' | 'sid'
}

/** Oldest first. Debian has none from 5.12 to 6.0: what those kernels lack beside 6.1 is not shown. */
export const LAB_KERNELS: readonly LabKernel[] = [
  { version: '6.1', suite: 'bookworm' },
  { version: '6.12', suite: 'trixie' },
  { version: '7.2', suite: 'sid' },
]
