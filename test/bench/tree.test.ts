import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, it, onTestFinished } from 'vitest'
import { checkTree, GROUP, makeTree, resetTree, UNTOUCHED } from '../../bench/tree.ts'
import { SHAPES, type Shape } from '../../bench/trees.ts'
import { isRoot } from '../helpers/stage.ts'

const title = 'the check of a tree detects a walk that missed one inode or one mode bit'

it.skipIf(!isRoot)(isRoot ? title : `${title} (skipped: chown needs root; run "sudo npm test")`, () => {
  const root = fs.mkdtempSync(`${tmpdir()}/modekeep-bench-tree-`)
  onTestFinished(() => fs.rmSync(root, { recursive: true }))
  makeTree(root, 1001)
  const all = fs.readdirSync(root, { recursive: true, encoding: 'utf8' })
  expect(all).toHaveLength(1001 + 2)
  for (const path of ['', ...all]) {
    fs.chownSync(`${root}/${path}`, 0, GROUP)
    fs.chmodSync(`${root}/${path}`, path.includes('/') ? 0o664 : 0o2775)
  }
  expect(() => checkTree(root, UNTOUCHED)).toThrow('expected group 1000')
  const granted = { group: GROUP, file: 0o660, directory: 0o2770 }
  checkTree(root, granted)
  expect(() => checkTree(root, { group: GROUP, file: 0, directory: 0o2000 })).toThrow('expected group 2000, mode 644')
  fs.chownSync(`${root}/directory-1/file-1000`, 0, 1000)
  expect(() => checkTree(root, granted)).toThrow('directory-1/file-1000: expected group 2000')
  resetTree(root)
  checkTree(root, UNTOUCHED)
})

const shaped = 'a tree has the directories and links of its shape'

it.skipIf(!isRoot)(isRoot ? shaped : `${shaped} (skipped: chown needs root; run "sudo npm test")`, () => {
  const root = fs.mkdtempSync(`${tmpdir()}/modekeep-bench-tree-`)
  onTestFinished(() => fs.rmSync(root, { recursive: true }))
  const shapes = Object.keys(SHAPES) as Shape[]
  const made = shapes.map((shape, index) => {
    makeTree(`${root}/${index}`, 12, shape)
    const all = fs.readdirSync(`${root}/${index}`, { recursive: true, withFileTypes: true })
    const files = all.filter((entry) => entry.isFile())
    const inodes = new Set(files.map((entry) => fs.statSync(`${entry.parentPath}/${entry.name}`).ino))
    return `${shape}: ${all.length - files.length} ${files.length} ${inodes.size}`
  })
  expect(made).toEqual([
    'directories of 1,000: 1 12 12',
    'one directory: 0 12 12',
    'directories of five: 3 12 12',
    'two links to each inode: 1 12 6',
    'links to one inode: 1 12 1',
  ])
})
