/** A process that made this call before and was killed, because it reported nothing for too long. */
export interface GivenUpProcess {
  pid: number
  seconds: number
  /** The process still waits in the kernel, which does not let it end. */
  isLeft: boolean
}
