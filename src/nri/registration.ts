import type { PluginRecord } from '../store/plugin-record.ts'
import { newestOf } from './newest.ts'

/**
 * Records whether the runtime has the plugin registered, by its events. Records are written one after the other, and of those
 * that come meanwhile only the newest.
 */
export class Registration {
  readonly #write: (record: PluginRecord) => Promise<void>
  #record: PluginRecord
  #written: Promise<void>

  /** @param write writes a record in another process; must not reject */
  constructor(socket: string, write: (record: PluginRecord) => Promise<void>) {
    this.#write = newestOf(write)
    this.#record = { isRegistered: false, runtime: '', since: Date.now(), socket }
    this.#written = this.#write(this.#record)
  }

  /** Settles once all that was recorded is written. */
  get written(): Promise<void> {
    return this.#written
  }

  hear(event: string, facts: Record<string, unknown> = {}): void {
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
