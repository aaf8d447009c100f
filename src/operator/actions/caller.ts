/** The process that a person has started, for a verb that does more than to tell a document. */
export interface Caller {
  /** modekeep's. */
  version: string
  /** Whether stdout is one. */
  isTerminal: boolean
  /** To stdout, all of it. @throws where it cannot be written, or nobody reads any more */
  write(bytes: Uint8Array): Promise<void>
  /** Aborted by Ctrl-C and SIGTERM, before they end the process. */
  interrupted: AbortSignal
}
