import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

const READS = 100

const PROGRAM = `
const fs = require('node:fs')
const seen = {}
let wanted = 0
function look() {
  for (let turn = 0; turn < ${READS}; turn++) {
    let what
    try { what = fs.readFileSync(process.argv[1], 'utf8') } catch (error) { what = error.code }
    seen[what] = true
  }
  for (; wanted > 0; wanted--) fs.writeSync(1, '.')
  setImmediate(look)
}
process.stdin.on('data', (data) => { wanted += data.length })
process.stdin.on('end', () => { fs.writeSync(1, JSON.stringify(Object.keys(seen))); process.exit() })
look()
`

export interface Reader {
  /** Until it has read a hundred times more. */
  more(): Promise<void>
  /** Ends it. Returns every content it read, and the code of every error it met. */
  end(): Promise<string[]>
}

/** A process that opens and reads a file in a loop. */
export function readInLoop(path: string): Reader {
  const child = spawn(process.execPath, ['-e', PROGRAM, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let text = ''
  child.stdout.on('data', (data) => {
    text += data
  })
  return {
    async more() {
      const before = text.length
      child.stdin.write('?')
      while (text.length === before) await once(child.stdout, 'data')
    },
    async end() {
      child.stdin.end()
      await once(child, 'close')
      return JSON.parse(text.slice(text.indexOf('[')))
    },
  }
}
