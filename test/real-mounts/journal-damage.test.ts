import * as fs from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { Crashing } from '../crash/every-call.ts'
import { journalPath, keepJournal } from '../crash/journal-files.ts'
import { makeVolume, wipe } from '../crash/volume.ts'
import { isRoot } from '../helpers/stage.ts'
import { listTree } from '../helpers/tree.ts'

const suiteTitle = `a damaged journal of a volume that is mounted${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(suiteTitle, () => {
  const sizeOf = (path: string) => fs.statSync(path).size

  const DAMAGES: [string, (path: string, foreign: Buffer) => void][] = [
    ['truncated to nothing', (path) => fs.truncateSync(path, 0)],
    ['truncated within a page', (path) => fs.truncateSync(path, Math.floor(sizeOf(path) / 2) + 100)],
    ['truncated within its header', (path) => fs.truncateSync(path, 60)],
    ['overwritten with noise', (path) => fs.writeFileSync(path, Buffer.alloc(sizeOf(path), 0xa7))],
    ['gone', (path) => fs.rmSync(path)],
    [
      "another program's database",
      (path) => {
        fs.rmSync(path)
        const database = new DatabaseSync(path)
        database.exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('not of modekeep')")
        database.close()
      },
    ],
    ["another volume's journal", (path, foreign) => fs.writeFileSync(path, foreign)],
  ]

  it.each(DAMAGES)(
    '%s: the second pod is refused with the file named, nothing changes, the first can unmount, and after a repair it restores',
    async (what, damage) => {
      const on = new Crashing('tmpfs')
      on.fresh()
      await on.mount('a')
      const foreign = fs.readFileSync(journalPath(on.node))
      await on.unmount('a')
      wipe(on.node)
      on.original = makeVolume(on.source)
      await on.mount('a')

      const putBack = keepJournal(on.node)
      const path = journalPath(on.node)
      damage(path, foreign)
      const damaged = fs.existsSync(path) ? fs.readFileSync(path) : undefined
      const before = listTree(fs, on.source)
      const again = on.mountCall('b', { fsGroupChangePolicy: 'Always' })
      const answer = await on.node.call(...again)
      expect(answer.status).toBe('Failure')
      expect(answer.message).toContain(`the ownership journal ${path} cannot be used (`)
      expect(answer.message).not.toContain('modekeep failed')
      // With the times of the last change: nothing was even touched.
      expect(listTree(fs, on.source)).toEqual(before)
      expect(on.node.layers('b')).toEqual([])
      expect(on.node.layers('a')).toHaveLength(1)

      await on.unmount('a')
      expect(listTree(fs, on.source)).toEqual(before)
      expect(warnings(on)).toEqual([expect.stringContaining(`the ownership journal ${path} cannot be used (`)])
      // What it is not modekeep's to write stays what it is.
      if (damaged && /noise|another/.test(what)) expect(fs.readFileSync(path).equals(damaged)).toBe(true)

      putBack()
      fs.rmSync(on.node.log)
      await on.mount('a')
      await on.unmount('a')
      on.expectOriginal()
    },
  )

  function warnings({ node }: Crashing): unknown[] {
    return node
      .logLines()
      .filter(({ level }) => level === 'warn')
      .map(({ message }) => message)
  }
})
