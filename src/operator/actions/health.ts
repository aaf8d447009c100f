/** The address that `heal --watch` listens at. @property address undefined: every address of this network namespace */
export interface HealthEndpoint {
  address: string | undefined
  port: number
  /** Serves scrapes in addition to probes. */
  hasMetrics: boolean
}

interface HealthSources {
  /** Returns why heals fail now; undefined: the last heal succeeded. */
  notReady(): string | undefined
  /** Returns metrics in Prometheus' text format; undefined: no metrics are served. */
  metrics: (() => Promise<string>) | undefined
}

/** Serves probes and scrapes over HTTP until it is disposed of. */
export type ServeHealth = (
  endpoint: Pick<HealthEndpoint, 'address' | 'port'>,
  sources: HealthSources,
) => Promise<Disposable>

/** Parses `ADDRESS:PORT` or `:PORT`; an IPv6 address has brackets. Returns undefined for any other text. */
export function parseListenAddress(text: string): Pick<HealthEndpoint, 'address' | 'port'> | undefined {
  const [, address, digits] = /^(\[[0-9A-Fa-f:.]+\]|\d+(?:\.\d+){3})?:([1-9]\d{0,4})$/.exec(text) ?? []
  const isAddress = address === undefined || URL.canParse(`http://${address}`)
  if (digits === undefined || Number(digits) > 65_535 || !isAddress) return undefined
  return { address: address?.replace(/^\[|\]$/g, ''), port: Number(digits) }
}
