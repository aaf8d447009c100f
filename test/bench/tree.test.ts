import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, it, onTestFinished } from 'vitest'
import { checkTree, GROUP, makeTree, resetTree } from '../../bench/tree.ts'
import { isRoot } from '../helpers/stage.ts'

const title = 'a walk that misses one inode, or a bit of one, is found out'

it.skipIf(!isRoot)(isRoot ? title : `${title} (skipped: chown needs root; run "sudo npm test")`, () => {
  const root = fs.mkdtempSync(`${tmpdir()}/modekeep-bench-tree-`)
  onTestFinished(() => fs.rmSync(root, { recursive: true }))
  makeTree(root, 1001)
  const all = fs.readdirSync(root, { recursive: true, encoding: 'utf8' })
  expect(all).toHaveLength(1001 + 2)
  resetTree(root)
  for (const path of ['', ...all]) {
    fs.chownSync(`${root}/${path}`, 0, GROUP)
    fs.chmodSync(`${root}/${path}`, path.includes('/') ? 0o664 : 0o2775)
  }
  const granted = { group: GROUP, file: 0o660, directory: 0o2770 }
  checkTree(root, granted)
  expect(() => checkTree(root, { group: GROUP, file: 0, directory: 0o2000 })).toThrow('expected group 2000, mode 644')
  fs.chownSync(`${root}/directory-1/file-0`, 0, 1000)
  expect(() => checkTree(root, granted)).toThrow('directory-1/file-0: expected group 2000')
})
