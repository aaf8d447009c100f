/** A helper program to be run: no shell, a fixed environment, its own deadline. */
export interface HelperOrder {
  program: string
  args: readonly string[]
  /** What it reads from its standard input. */
  input?: Uint8Array
  environment?: Readonly<Record<string, string>>
  timeoutSeconds: number
  /** What no message may repeat. */
  secrets: ReadonlyMap<string, Uint8Array>
  /** It ends when its daemon runs, which must outlive this process and the service that started it. */
  leavesDaemon?: boolean
}

export interface Helpers {
  /** @throws {Error} with what it said, without a secret */
  run(order: HelperOrder): Promise<void>
}
