import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import type { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { Journal } from '../../../src/ownership/journal/journal.ts'
import { databaseHost } from './place.ts'

it('a journal that cannot be opened leaves no database open: a worker that stays would keep its log', () => {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-journal-`)
  onTestFinished(() => fs.rmSync(top, { recursive: true }))
  const host = databaseHost()
  const opened: DatabaseSync[] = []
  const failing = {
    ...host,
    openDatabase: (path: string) => {
      const database = host.openDatabase(path)
      opened.push(database)
      return database
    },
    files: {
      ...host.files,
      has(path: string): boolean {
        if (path.endsWith('.begun')) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' })
        return host.files.has(path)
      },
    },
  }
  expect(() => Journal.open(failing, `${top}/journal.db`, 'v')).toThrow('EMFILE')
  expect(opened.filter(({ isOpen }) => isOpen)).toEqual([])
})
