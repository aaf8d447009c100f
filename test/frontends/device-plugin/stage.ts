import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'

import { type DevicePluginTiming, runDevicePlugin } from '../../../src/frontends/device-plugin/plugin.ts'
import { Kubelet } from './kubelet.ts'

/** Quick to try again; slow to look without being told, so that a change that is not told of shows. */
const QUICK: DevicePluginTiming = {
  firstMs: 10,
  mostMs: 50,
  graceMs: 60_000,
  checkMs: 3_600_000,
  registerMs: 60_000,
  drainMs: 2_000,
}

export interface Running {
  readonly events: readonly { event: string; [fact: string]: unknown }[]
  named(event: string): { event: string; [fact: string]: unknown }[]
  /** @throws what the plugin ended with */
  end(): Promise<void>
  /** Settles when the plugin ends by itself. */
  readonly ended: Promise<void>
}

/** A kubelet's directory with a fake kubelet, and plugins that run in this process. */
export class Stage {
  readonly top = fs.mkdtempSync(join(tmpdir(), 'modekeep-plugin-'))
  readonly directory: string
  readonly kubelet: Kubelet
  readonly #running: Running[] = []

  /** @param below where kubelet's directory is */
  constructor(below = '') {
    this.directory = join(this.top, below, 'device-plugins')
    this.kubelet = new Kubelet(this.directory)
  }

  plugin({ device = '/dev/null', count = 3, timing = {} as Partial<DevicePluginTiming> } = {}): Running {
    const stop = new AbortController()
    const events: Running['events'][number][] = []
    const ended = runDevicePlugin(
      {
        directory: this.directory,
        device,
        count,
        timing: { ...QUICK, ...timing },
        log: (level, event, facts) => events.push({ level, event, ...facts }),
      },
      stop.signal,
    )
    ended.catch(() => {})
    const end = () => {
      stop.abort()
      return ended
    }
    const running = { events, named: (name: string) => events.filter(({ event }) => event === name), end, ended }
    this.#running.push(running)
    return running
  }

  /** The sockets of plugins that are there. */
  sockets(): string[] {
    return fs.existsSync(this.directory) ? fs.readdirSync(this.directory).filter((name) => /^modekeep-/.test(name)) : []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#running.map((plugin) => plugin.end()))
    this.kubelet.stop()
    fs.rmSync(this.top, { recursive: true, force: true })
  }
}

/** Waits for a condition, however slow the machine is. */
export function until(condition: () => boolean): Promise<void> {
  return vi.waitFor(
    () => {
      if (!condition()) throw new Error(`did not come about: ${condition}`)
    },
    { timeout: 600_000, interval: 5 },
  )
}
