const END_SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Returns a signal that SIGINT or SIGTERM aborts, for a server that then ends by itself. */
export function createEndSignal(): AbortSignal {
  const controller = new AbortController()
  for (const signal of END_SIGNALS) process.on(signal, () => controller.abort())
  return controller.signal
}

/** Calls `report` before SIGINT or SIGTERM ends the process, until it is disposed of. */
export function onInterrupt(report: () => void): Disposable {
  const listeners = END_SIGNALS.map((signal) => {
    const listener = () => {
      report()
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
