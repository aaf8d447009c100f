import { FAMILIES, type Family } from './families.ts'
import type { Samples } from './samples.ts'

/**
 * The samples in Prometheus' text format 0.0.4, families in the order of their table. Series of no family are left out:
 * another version may have counted them.
 */
export function textOf(samples: Samples): string {
  return Object.entries<Family>(FAMILIES)
    .flatMap(([name, { type, help }]) => {
      const own = [...samples].filter(([key]) => isOf(name, type, key))
      if (own.length === 0) return []
      const lines = own.map(([key, value]) => `${key} ${value}\n`)
      return [`# HELP ${name} ${help}\n`, `# TYPE ${name} ${type}\n`, ...lines]
    })
    .join('')
}

function isOf(family: string, type: Family['type'], key: string): boolean {
  const name = key.split('{', 1)[0]
  return type === 'histogram' ? PARTS.some((part) => name === `${family}${part}`) : name === family
}

const PARTS = ['_bucket', '_sum', '_count']
