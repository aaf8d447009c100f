/** Where `heal --watch` answers. @property address undefined: every address of this network namespace */
export interface HealthEndpoint {
  address: string | undefined
  port: number
  /** Scrapes too, and not only probes. */
  hasMetrics: boolean
}

interface HealthSources {
  /** Why mounts are not looked after now; undefined: they are. */
  notReady(): string | undefined
  /** In Prometheus' text format; undefined: not to be had here. */
  metrics: (() => Promise<string>) | undefined
}

/** Answers over HTTP until it is disposed of. */
export type ServeHealth = (where: Pick<HealthEndpoint, 'address' | 'port'>, told: HealthSources) => Promise<Disposable>

/** Reads `ADDRESS:PORT` or `:PORT`; an IPv6 address has brackets. Undefined: it is none of these. */
export function parseListenAddress(text: string): Pick<HealthEndpoint, 'address' | 'port'> | undefined {
  const [, address, digits] = /^(\[[0-9A-Fa-f:.]+\]|\d+(?:\.\d+){3})?:([1-9]\d{0,4})$/.exec(text) ?? []
  const isAddress = address === undefined || URL.canParse(`http://${address}`)
  if (digits === undefined || Number(digits) > 65_535 || !isAddress) return undefined
  return { address: address?.replace(/^\[|\]$/g, ''), port: Number(digits) }
}
