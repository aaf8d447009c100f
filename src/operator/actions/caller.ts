/** The process that an operator has started, for a verb that writes more than a document. */
export interface Caller {
  /** modekeep's version. */
  version: string
  /** True if stdout is a terminal. */
  isTerminal: boolean
  /** Writes all bytes to stdout. @throws if stdout cannot be written or its reader has closed it */
  write(bytes: Uint8Array): Promise<void>
  /** Aborted by Ctrl-C and SIGTERM, before they end the process. */
  interrupted: AbortSignal
}
