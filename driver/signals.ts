const END_SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Aborted by SIGINT or SIGTERM, for what ends by itself then. */
export function createEndSignal(): AbortSignal {
  const ending = new AbortController()
  for (const signal of END_SIGNALS) process.on(signal, () => ending.abort())
  return ending.signal
}

/** Lets something be said before a signal ends the process, at once, as ever; until it is disposed of. */
export function onInterrupt(say: () => void): Disposable {
  const listeners = END_SIGNALS.map((signal) => {
    const listener = () => {
      say()
      process.off(signal, listener)
      process.kill(process.pid, signal)
    }
    process.on(signal, listener)
    return [signal, listener] as const
  })
  return {
    [Symbol.dispose]() {
      for (const [signal, listener] of listeners) process.off(signal, listener)
    },
  }
}
