import { onTestFinished } from 'vitest'
import { DOOR_RUN } from './door-run.ts'
import { NodeDirectory } from './node-directory.ts'
import { ResidentDoor } from './resident-door.ts'

export { BINARY } from './node-directory.ts'

/** A node of the test that is running, gone when that has finished. */
export class BinaryNode extends NodeDirectory {
  #door: ResidentDoor | undefined

  constructor() {
    super()
    onTestFinished(async () => {
      await this.#door?.close()
      this.close()
    })
  }

  /** The process that makes the calls of a run over the door, in place of those that kubelet starts. */
  residentWorkers(): number[] {
    return this.#door?.workers() ?? []
  }

  override environment(): Readonly<Record<string, string>> {
    if (DOOR_RUN) this.#door ??= new ResidentDoor(`${this.top}/config.json`)
    return { ...(this.#door && { MODEKEEP_SOCKET: this.#door.socket }), ...super.environment() }
  }
}
