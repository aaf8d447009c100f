import type { PluginRecord } from '../store/server-records.ts'
import { coalesceCalls } from './coalesce.ts'

/**
 * Records from the plugin's events whether the runtime has the plugin registered. Records are written one after the other,
 * and only the newest of the waiting ones is written.
 */
export class RegistrationRecorder {
  readonly #write: (record: PluginRecord) => Promise<void>
  #record: PluginRecord
  #written: Promise<void>

  /** @param write writes a record in another process; must not reject */
  constructor(socket: string, write: (record: PluginRecord) => Promise<void>) {
    this.#write = coalesceCalls(write)
    this.#record = { isRegistered: false, runtime: '', since: Date.now(), socket }
    this.#written = this.#write(this.#record)
  }

  /** Settles once no record is being written. */
  get whenWritten(): Promise<void> {
    return this.#written
  }

  /** Updates the record for an event of the plugin's log. */
  observe(event: string, facts: Record<string, unknown> = {}): void {
    const { isRegistered } = this.#record
    if (event === 'configured') {
      const nri = typeof facts.nri === 'string' ? facts.nri : undefined
      this.#record = { ...this.#record, runtime: `${facts.runtime} ${facts.version}`, nri }
    }
    if (event === 'synchronized') this.#change(true)
    else if (event === 'away' && isRegistered) this.#change(false)
  }

  #change(isRegistered: boolean): void {
    this.#record = { ...this.#record, isRegistered, since: Date.now() }
    this.#written = this.#write(this.#record)
  }
}
