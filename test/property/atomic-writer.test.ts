import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { write } from '../helpers/atomic-writer.ts'
import { isRoot, kernelStage } from '../helpers/stage.ts'
import { identityAt, outcomeOf, WAYS } from '../kernel/path/ways.ts'
import { corpusOf } from './corpus.ts'
import { holds, runs } from './holds.ts'
import { type Layout, layouts, modelled, type Node, subPaths } from './sub-path.ts'

const title = `a subPath in a volume of an atomic writer${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

/** Makes a layout; its parents are made with it. */
function build(source: string, layout: Layout): void {
  fs.mkdirSync(source)
  for (const [path, node] of layout) {
    const full = `${source}/${path}`
    if (node.kind === 'dir') fs.mkdirSync(full, { recursive: true })
    else if (node.kind === 'file') fs.writeFileSync(full, path)
    else if (node.kind === 'fifo') execFileSync('mkfifo', [full])
    else fs.symlinkSync(node.target.replaceAll('@', source), full)
  }
}

/** What is not in the layout is not there: a tampered `..data` hides what lay below it. */
function whole(layout: Layout): Layout {
  const isThere = (path: string) => path === '' || layout.get(path)?.kind === 'dir'
  return new Map([...layout].filter(([path]) => isThere(path.split('/').slice(0, -1).join('/'))))
}

describe.skipIf(!isRoot)(title, () => {
  function stageFor() {
    const stage = kernelStage('tmpfs')
    onTestFinished(() => stage.close())
    const seen = { found: 0, refused: 0 }
    let count = 0

    function expectAsModelled(given: Layout, asked: readonly string[]): void {
      const layout = whole(given)
      const source = `${stage.top}/volume${count++}`
      build(source, layout)
      const root = linuxHost.inodes.openLinkFree(source)
      try {
        for (const subPath of asked) {
          const path = modelled(layout, source, subPath)
          const expected =
            path === undefined ? undefined : identityAt(linuxHost, `${source}/${path}`.replace(/\/$/, ''))
          for (const [way, by] of WAYS) {
            const outcome = outcomeOf(by(linuxHost.inodes), root, subPath)
            if (expected === undefined) expect(outcome, `${way}: ${subPath}`).toMatch(/^subPath "/)
            else expect(outcome, `${way}: ${subPath}`).toBe(expected)
          }
          seen[expected === undefined ? 'refused' : 'found']++
        }
      } finally {
        linuxHost.inodes.close(root)
        fs.rmSync(source, { recursive: true })
      }
    }
    return { stage, seen, expectAsModelled }
  }

  it.each(corpusOf<{ layout: Record<string, Node>; asked: string[] }>('atomic-writer'))(
    "a subPath in a volume of kubelet's atomic writer leads to the expected target, or is refused: %s",
    (_name, { layout, asked }) => {
      stageFor().expectAsModelled(new Map(Object.entries(layout)), asked)
    },
  )

  it("a subPath in a volume of kubelet's atomic writer leads to the expected target, or is refused, after any change", () => {
    const { seen, expectAsModelled } = stageFor()
    holds(
      fc.tuple(layouts, fc.array(subPaths, { minLength: 4, maxLength: 12 })),
      ([layout, asked]) => expectAsModelled(layout, asked),
      400,
    )
    expect(seen.found).toBeGreaterThan(runs(100))
    expect(seen.refused).toBeGreaterThan(runs(100))
  })

  it("a subPath in a volume of kubelet's atomic writer leads to the newest content after any earlier writes", () => {
    const { stage } = stageFor()
    const name = fc.constantFrom('a', 'b', 'c', '...', 'é')
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
    const content = fc.dictionary(path, fc.string(), { minKeys: 1, maxKeys: 4 })
    let count = 0
    holds(
      fc.array(content, { minLength: 1, maxLength: 4 }).filter((versions) => isTree(Object.assign({}, ...versions))),
      (versions) => {
        const volume = `${stage.top}/written${count++}`
        fs.mkdirSync(volume)
        const root = linuxHost.inodes.openLinkFree(volume)
        try {
          for (const files of versions) {
            const dated = write(volume, files)
            for (const file of Object.keys(files)) {
              for (const [, by] of WAYS) {
                expect(outcomeOf(by(linuxHost.inodes), root, file)).toBe(identityAt(linuxHost, `${dated}/${file}`))
              }
            }
          }
        } finally {
          linuxHost.inodes.close(root)
          fs.rmSync(volume, { recursive: true })
        }
      },
      150,
    )
  })
})

/** No name is both a file and a directory. */
function isTree(files: Readonly<Record<string, string>>): boolean {
  const paths = Object.keys(files)
  return paths.every((path) => paths.every((other) => !other.startsWith(`${path}/`)))
}
