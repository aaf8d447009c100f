import * as fs from 'node:fs'
import type { NodeDirectory } from '../helpers/node-directory.ts'

/** The directory of the only volume that was walked; its journal's files are not to be read by tests. */
export function volumeState(node: NodeDirectory): string {
  const volumes = fs.readdirSync(`${node.state}/ownership`)
  if (volumes.length !== 1) throw new Error(`volumes with a journal: ${volumes.join(' ')}`)
  return `${node.state}/ownership/${volumes[0]}`
}

export function journalPath(node: NodeDirectory): string {
  return `${volumeState(node)}/journal.db`
}

const SUFFIXES = ['', '-wal', '-shm', '-journal']

/** Saves the current journal. The returned function restores it in place of the existing one. */
export function keepJournal(node: NodeDirectory): () => void {
  const path = journalPath(node)
  const kept = SUFFIXES.filter((suffix) => fs.existsSync(path + suffix)).map(
    (suffix) => [path + suffix, fs.readFileSync(path + suffix)] as const,
  )
  return () => {
    for (const suffix of SUFFIXES) fs.rmSync(path + suffix, { recursive: true, force: true })
    for (const [file, content] of kept) fs.writeFileSync(file, content, { mode: 0o600 })
  }
}
