import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { type HealWatchOptions, type RunHeal, watchAndHeal } from '../../src/repair/watch.ts'

const SAFETY = 5 * 60_000

describe('heal --watch', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** A watch over events that the test makes; `work` is what a heal does. */
  function start(work: (heals: number) => void | Promise<void> = () => {}) {
    const ending = new AbortController()
    const failures: unknown[] = []
    const state = {
      heals: 0,
      running: 0,
      ended: false,
      spent: 0,
      isBlind: false,
      followed: [] as readonly string[],
      attended: [] as readonly number[],
    }
    const isNew: boolean[] = []
    const isUnsettled: boolean[] = []
    let changed = () => {}
    const options: HealWatchOptions = {
      signal: ending.signal,
      spent: () => state.spent,
      failed: (error) => failures.push(error),
      changes: {
        listen(callback) {
          changed = callback
        },
        follow(directories) {
          state.followed = directories
          return isNew.shift() ?? false
        },
        attend(daemons) {
          state.attended = daemons
        },
      },
    }
    const heal: RunHeal = async () => {
      state.heals++
      expect(++state.running).toBe(1)
      try {
        await work(state.heals)
      } finally {
        state.running--
      }
      return {
        watched: [`/of/heal/${state.heals}`],
        daemons: [state.heals],
        isUnsettled: isUnsettled.shift() ?? false,
        isBlind: state.isBlind,
      }
    }
    const end = () => ending.abort()
    onTestFinished(end)
    return {
      state,
      failures,
      isNew,
      isUnsettled,
      end,
      event: () => changed(),
      begin() {
        void watchAndHeal(heal, options).then(() => {
          state.ended = true
        })
        return this.settle()
      },
      /** Until everything is done that does not wait for time far away. */
      settle: () => vi.advanceTimersByTimeAsync(60_000),
      soon: () => vi.advanceTimersByTimeAsync(0),
    }
  }

  it('heals once at its start', async () => {
    const it = start()
    await it.begin()
    expect(it.state).toMatchObject({ heals: 1, followed: ['/of/heal/1'], attended: [1], ended: false })
  })

  it('heals once and immediately after a change', async () => {
    const it = start()
    await it.begin()
    it.event()
    await it.soon()
    expect(it.state.heals).toBe(2)
    await it.settle()
    expect(it.state).toMatchObject({ heals: 2, followed: ['/of/heal/2'] })
  })

  it('heals after the first and the last change of a burst, not after each', async () => {
    const it = start()
    await it.begin()
    for (let n = 0; n < 100; n++) {
      it.event()
      await it.soon()
    }
    expect(it.state.heals).toBe(2)
    await it.settle()
    expect(it.state.heals).toBe(3)
  })

  it('heals at most five times a second under endless changes', async () => {
    const it = start()
    await it.begin()
    for (let time = 0; time < 10_000; time += 10) {
      it.event()
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(it.state.heals).toBeGreaterThanOrEqual(40)
    expect(it.state.heals).toBeLessThanOrEqual(52)
  })

  it('heals once more after a change during a heal, and never twice at a time', async () => {
    const it = start(async (heals) => {
      if (heals === 1) {
        it.event()
        await new Promise((resolve) => setTimeout(resolve, 5_000))
      }
    })
    await it.begin()
    expect(it.state).toMatchObject({ heals: 2, running: 0 })
  })

  it("becomes idle although a heal's own mounts are changes", async () => {
    const it = start((heals) => {
      if (heals <= 3) it.event()
    })
    await it.begin()
    expect(it.state.heals).toBe(4)
  })

  it('heals once more if a new directory is watched', async () => {
    const it = start()
    it.isNew.push(true)
    await it.begin()
    expect(it.state.heals).toBe(2)
  })

  it('checks again at growing intervals while a repair is incomplete, and becomes idle when all are complete', async () => {
    const it = start()
    it.isUnsettled.push(...Array.from({ length: 12 }, () => true))
    await it.begin()
    expect(it.state.heals).toBeGreaterThan(6)
    expect(it.state.heals).toBeLessThan(12)
    for (let minutes = 0; minutes < 4; minutes++) await it.settle()
    expect(it.state.heals).toBe(13)
    it.event()
    await it.soon()
    expect(it.state.heals).toBe(14)
  })

  it('heals immediately after a change, also while another repair is incomplete', async () => {
    const it = start()
    it.isUnsettled.push(...Array.from({ length: 20 }, () => true))
    await it.begin()
    const { heals } = it.state
    it.event()
    await it.soon()
    expect(it.state.heals).toBe(heals + 1)
  })

  it('continues after a failed heal, and reports it', async () => {
    const it = start((heals) => {
      if (heals === 1) throw new Error('no luck')
    })
    await it.begin()
    expect(it.failures).toEqual([new Error('no luck')])
    expect(it.state).toMatchObject({ heals: 2, followed: ['/of/heal/2'] })
  })

  it('heals at growing intervals while heals fail, and without delay again after a success', async () => {
    const it = start((heals) => {
      if (heals > 60) return
      it.event()
      throw new Error('no luck')
    })
    await it.begin()
    const inFirstMinute = it.state.heals
    expect(inFirstMinute).toBeLessThan(12)
    await it.settle()
    expect(it.state.heals - inFirstMinute).toBeLessThanOrEqual(2)
    while (it.state.heals <= 60) await it.settle()
    const { heals } = it.state
    await it.settle()
    it.event()
    await vi.advanceTimersByTimeAsync(200)
    expect(it.state.heals).toBe(heals + 1)
  })

  it('heals every five minutes without a change, in case an event was missed', async () => {
    const it = start()
    await it.begin()
    for (const heals of [2, 3, 4]) {
      await vi.advanceTimersByTimeAsync(SAFETY + 1_000)
      expect(it.state.heals).toBe(heals)
    }
  })

  it('ends at once while it waits', async () => {
    const it = start()
    await it.begin()
    it.end()
    await it.soon()
    expect(it.state.ended).toBe(true)
    it.event()
    await it.settle()
    expect([it.state.heals, vi.getTimerCount()]).toEqual([1, 0])
  })

  it('ends after a running heal, and starts no other', async () => {
    const it = start(async () => {
      it.event()
      it.end()
      await new Promise((resolve) => setTimeout(resolve, 400))
      expect(it.state.ended).toBe(false)
    })
    await it.begin()
    expect(it.state).toMatchObject({ heals: 1, running: 0, ended: true })
    expect(it.failures).toEqual([])
  })

  it('ends within a second while a heal hangs', async () => {
    const it = start(() => new Promise(() => {}))
    void it.begin()
    await it.soon()
    it.end()
    await vi.advanceTimersByTimeAsync(999)
    expect(it.state.ended).toBe(true)
  })

  it('pauses for nine times the CPU time of a heal, at most half a minute', async () => {
    const it = start(() => {
      it.state.spent += it.state.heals === 1 ? 1_000 : 60_000
    })
    await it.begin()
    await it.settle()
    it.event()
    await it.soon()
    expect(it.state.heals).toBe(2)
    it.event()
    await vi.advanceTimersByTimeAsync(29_000)
    expect(it.state.heals).toBe(2)
    await vi.advanceTimersByTimeAsync(1_001)
    expect(it.state.heals).toBe(3)
  })

  it('does not pause for the time that a heal waited for a server', async () => {
    const it = start(() => new Promise((resolve) => setTimeout(resolve, 5_000)))
    await it.begin()
    it.event()
    await vi.advanceTimersByTimeAsync(5_100)
    it.event()
    await vi.advanceTimersByTimeAsync(200)
    expect(it.state.heals).toBe(3)
  })

  it('checks again every half minute if a directory cannot be watched', async () => {
    const it = start()
    it.state.isBlind = true
    await it.begin()
    await vi.advanceTimersByTimeAsync(31_000)
    expect(it.state.heals).toBe(4)
  })

  it('does not heal if the watch is ended before its start', async () => {
    const it = start()
    it.end()
    await it.begin()
    expect(it.state).toMatchObject({ heals: 0, ended: true })
  })
})
