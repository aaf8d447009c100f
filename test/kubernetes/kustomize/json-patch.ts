import type { Resource } from './render.ts'

interface Operation {
  op: string
  path: string
  value?: unknown
}

/** A copy of the resource with RFC 6902's add, remove and replace. @throws {Error} for what is not there, or unknown */
export function patched(resource: Resource, operations: readonly Operation[]): Resource {
  const copy = structuredClone(resource)
  for (const { op, path, value } of operations) {
    const keys = path
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    const last = keys.pop() ?? ''
    // biome-ignore lint/suspicious/noExplicitAny: any part of any resource.
    const parent = keys.reduce<any>((part, key) => part?.[key], copy)
    const exists = parent !== undefined && last in parent
    if (parent === undefined || (op !== 'add' && !exists)) throw new Error(`${op}: there is no ${path}`)
    if (op === 'remove') Array.isArray(parent) ? parent.splice(Number(last), 1) : delete parent[last]
    else if (op === 'replace' || (op === 'add' && !Array.isArray(parent))) parent[last] = structuredClone(value)
    else if (op === 'add') parent.splice(last === '-' ? parent.length : Number(last), 0, structuredClone(value))
    else throw new Error(`the small renderer knows no ${op}`)
  }
  return copy
}
