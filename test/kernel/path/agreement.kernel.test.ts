import { expect, it, onTestFinished } from 'vitest'
import { getErrno, type Handle, type Inodes } from '../../../src/kernel/host.ts'
import { openSubPathByComponents } from '../../../src/kernel/path/open-sub-path.ts'
import { memoryStage, onKernelStages, type Stage } from '../../helpers/stage.ts'
import { makeTree } from '../../helpers/tree.ts'

const TREES = 60
const INODES = 12
const ASKED = 40
const NAMES = ['a', 'b', 'c', 'd']
const STEPS = [...NAMES, '..', '..', '.', '']

/** Numbers that are the same in each run. */
function generator(seed: number) {
  let state = seed
  const below = (limit: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return (state >> 8) % limit
  }
  const pick = <T>(list: readonly T[]) => list[below(list.length)] as T
  const path = (parts: readonly string[], longest: number) =>
    Array.from({ length: 1 + below(longest) }, () => pick(parts)).join('/')
  return { below, pick, path }
}

type Random = ReturnType<typeof generator>

/** Specs of makeTree: directories, files, and relative links to anywhere (of absolute ones the kernel follows none). */
function randomTree({ below, pick, path }: Random): string[] {
  const directories = ['']
  const taken = new Set<string>()
  const specs: string[] = []
  for (let count = 0; count < INODES; count++) {
    const name = pick(directories) + pick(NAMES)
    if (taken.has(name)) continue
    taken.add(name)
    const kind = below(4)
    if (kind === 0) specs.push(`file ${name} 0644`)
    else if (kind === 1) {
      specs.push(`dir ${name} 0755`)
      directories.push(`${name}/`)
    } else specs.push(`link ${name} ${path(STEPS, 4).replace(/^\/+/, '') || '.'}`)
  }
  return specs
}

/** Where what is found lies, or why it is not. */
function found(inodes: Inodes, top: string, open: () => Handle): string {
  try {
    const handle = open()
    const path = inodes.pathOf(handle).slice(top.length)
    inodes.close(handle)
    return `found ${path}`
  } catch (error) {
    const code = getErrno(error)
    // A rename anywhere on the node, openat2(2): to be tried again.
    if (code === 'EAGAIN') return found(inodes, top, open)
    if (code) return code
    const words = error instanceof Error ? error.message : String(error)
    return REASONS.find(([, sentence]) => sentence.test(words))?.[0] ?? words
  }
}

const REASONS: readonly (readonly [string, RegExp])[] = [
  ['EXDEV', / leads out of the source /],
  ['ELOOP', / goes through more than 40 links/],
  ['ENOENT', / does not exist/],
  ['ENOTDIR', /, not a directory/],
]

onKernelStages('a subPath in trees full of links', (open) => {
  it('openSubPathByComponents and the in-memory host return the same result or error as the kernel', () => {
    const stages = [open(), memoryStage()]
    onTestFinished(() => {
      for (const stage of stages) stage.close()
    })
    const random = generator(1)
    const seen: Record<string, number> = {}
    for (let count = 0; count < TREES; count++) {
      const tree = randomTree(random)
      const ways = stages.flatMap((stage) => waysIn(stage, `${stage.top}/tree${count}/data`, tree))
      for (let asked = 0; asked < ASKED; asked++) {
        const subPath = random.path(NAMES, 5)
        const [kernel = '', ...others] = ways.map((way) => way(subPath))
        expect(others, `${subPath} in ${tree.join(', ')}`).toEqual([kernel, kernel, kernel])
        const kind = kernel.replace(/ .*/, '')
        seen[kind] = (seen[kind] ?? 0) + 1
      }
    }
    expect(Object.keys(seen).sort()).toEqual(['ELOOP', 'ENOENT', 'ENOTDIR', 'EXDEV', 'found'])
    for (const times of Object.values(seen)) expect(times).toBeGreaterThan(30)
  })
})

function waysIn({ host: { inodes }, fs }: Stage, source: string, tree: readonly string[]) {
  makeTree(fs, source, tree)
  const root = inodes.openLinkFree(source)
  onTestFinished(() => inodes.close(root))
  return [
    (subPath: string) => found(inodes, source, () => inodes.openBeneath(root, subPath)),
    (subPath: string) => found(inodes, source, () => openSubPathByComponents(inodes, root, subPath)),
  ]
}
