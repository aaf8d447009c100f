import fc, { type Arbitrary } from 'fast-check'

/** A volume as an atomic writer makes it, and what hostile hands make of it: path to what is there. */
export type Layout = ReadonlyMap<string, Node>
export type Node = { kind: 'dir' } | { kind: 'file' } | { kind: 'fifo' } | { kind: 'link'; target: string }

const DATED = ['..2024_01_01_00_00_00.1', '..2025_12_31_23_59_59.4294967295', '..1']
const NAMES = ['config', 'key', 'dir', 'tls.crt', '...', '..a', 'é']

/** Where a link may lead: `@` is the source's own path. */
const targets = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...DATED) },
  { weight: 4, arbitrary: fc.constantFrom(...NAMES.map((name) => `..data/${name}`)) },
  {
    weight: 3,
    arbitrary: fc
      .array(fc.constantFrom('..', '..', '.', '', '..data', ...DATED, ...NAMES), { minLength: 1, maxLength: 5 })
      .map((parts) => parts.join('/').replace(/^\/+/, '') || '.'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('@', '@/..data', '@/..data/key', '@/..', '@x', '/', '/etc/passwd', '//@//./key'),
  },
)

const entry = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('link' as const), target: targets }) },
  { weight: 3, arbitrary: fc.constantFrom<Node>({ kind: 'file' }, { kind: 'dir' }) },
  { weight: 1, arbitrary: fc.constant<Node>({ kind: 'fifo' }) },
)

const dated = fc.tuple(fc.constantFrom(...DATED), fc.dictionary(fc.constantFrom(...NAMES), entry, { maxKeys: 4 }))

/** Valid ones first: a writer's own, then changed ones. */
export const layouts: Arbitrary<Layout> = fc
  .record({
    current: fc.constantFrom(...DATED),
    versions: fc.array(dated, { minLength: 1, maxLength: 3 }),
    links: fc.subarray(NAMES),
    tampered: fc.dictionary(fc.constantFrom('..data', '..data_tmp', ...NAMES), entry, { maxKeys: 3 }),
  })
  .map(({ current, versions, links, tampered }) => {
    const layout = new Map<string, Node>()
    for (const [name, files] of versions) {
      layout.set(name, { kind: 'dir' })
      for (const [file, node] of Object.entries(files)) layout.set(`${name}/${file}`, node)
    }
    layout.set('..data', { kind: 'link', target: current })
    for (const name of links) layout.set(name, { kind: 'link', target: `..data/${name}` })
    for (const [name, node] of Object.entries(tampered)) layout.set(name, node)
    return layout
  })

export const subPaths = fc
  .array(fc.constantFrom('..data', '..data_tmp', ...DATED, ...NAMES), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join('/'))

const MOST_LINKS = 40

/**
 * Where a path leads by the rules alone, written down once more: links are followed, none may leave the source, `..` goes
 * to the directory that was come from.
 * @returns the path in the source, '' being the source; undefined where it must be refused
 */
export function modelled(layout: Layout, source: string, subPath: string): string | undefined {
  let ahead = subPath.split('/')
  let here: string[] = []
  let links = 0
  while (ahead.length > 0) {
    const [part = '', ...rest] = ahead
    ahead = rest
    if (part === '' || part === '.') continue
    if (part === '..') {
      if (here.length === 0) return undefined
      here = here.slice(0, -1)
      continue
    }
    const path = [...here, part].join('/')
    const node = layout.get(path)
    if (node?.kind === 'link') {
      if (++links > MOST_LINKS) return undefined
      const target = node.target.replaceAll('@', source)
      if (!target.startsWith('/')) ahead = [...target.split('/'), ...ahead]
      else {
        const inside = belowSource(target, source)
        if (inside === undefined) return undefined
        here = []
        ahead = [...inside, ...ahead]
      }
    } else if (node?.kind === 'dir') here = [...here, part]
    else if (node && ahead.length === 0) return path
    // Nothing there, or a file with something after it, be it a dot.
    else return undefined
  }
  return here.join('/')
}

/** What of an absolute link's text is behind the source's own path. */
function belowSource(target: string, source: string): string[] | undefined {
  const parts = target.split('/')
  for (const name of source.split('/').filter((part) => part !== '')) {
    while (parts[0] === '' || parts[0] === '.') parts.shift()
    if (parts.shift() !== name) return undefined
  }
  return parts
}
