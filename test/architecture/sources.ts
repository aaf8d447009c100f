import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

export interface Source {
  path: string
  /** Folder of `src`; 'driver' for the driver's files. */
  room: string
  text: string
  /** Paths from the root, or names of packages. */
  imports: string[]
}

export function sourcesIn(folder: string, recursive: boolean): Source[] {
  const names = readdirSync(join(ROOT, folder), { recursive, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  return names.map((name) => {
    const path = `${folder}/${name}`
    const text = readFileSync(join(ROOT, path), 'utf8')
    return { path, room: roomOf(path), text, imports: importsOf(path, text) }
  })
}

export function roomOf(path: string): string {
  const [top = '', room = ''] = path.split('/')
  return top === 'src' ? room : top
}

const IMPORT =
  /^\s*(?:import|export)\b[^'"`;]*?from\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\b(?:import|require|getBuiltinModule)\(\s*['"]([^'"]+)['"]/gm

/** What a file imports, types included. */
export function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map((match) => {
    const name = match[1] ?? match[2] ?? match[3] ?? ''
    return name.startsWith('.') ? relative(ROOT, resolve(ROOT, path, '..', name)) : name
  })
}

/** The circles in a graph, each once, from its first name on. */
export function circlesOf(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const circles = new Set<string>()
  const done = new Set<string>()
  const visit = (node: string, path: readonly string[]): void => {
    const start = path.indexOf(node)
    if (start >= 0) {
      const circle = path.slice(start)
      const first = circle.indexOf([...circle].sort()[0] ?? '')
      circles.add([...circle.slice(first), ...circle.slice(0, first)].join(' -> '))
      return
    }
    if (done.has(node)) return
    for (const next of edges.get(node) ?? []) visit(next, [...path, node])
    done.add(node)
  }
  for (const node of edges.keys()) visit(node, [])
  return [...circles]
}
