import * as fs from 'node:fs'
import { extname } from 'node:path'
import type { Plugin } from 'esbuild'
import { buildProgram, DRIVER_ENTRY_FILE } from '../scripts/build/program.ts'
import type { Architecture } from '../scripts/build/runtime.ts'
import { runCommand } from '../scripts/fetch/command.ts'
import { Node } from './peers/modekeep.ts'
import { median } from './statistics.ts'
import { makeTree } from './tree.ts'
import { mountVolume } from './volume.ts'

const CALLS = 30
const SHOWN = 20

/** What a call tells at its end: when it began and ended to evaluate a file, and what Node loaded for it. */
interface Told {
  moments: [file: string, nanoseconds: number][]
  builtins: string[]
}

/** What an executable that tells of itself evaluates in `init` and in a repeated mount, and how long that takes. */
export async function modules(workDirectory: string, volumes: string): Promise<string> {
  const program = `${workDirectory}/timed`
  fs.writeFileSync(program, await buildProgram(process.arch as Architecture, DRIVER_ENTRY_FILE, undefined, [telling]), {
    mode: 0o755,
  })
  mountVolume('tmpfs', volumes, 0)
  const tree = `${volumes}/tree`
  const node = new Node(`${workDirectory}/node`, volumes)
  makeTree(tree, 10)
  node.mount(tree, {})
  const told = (args: string[]) =>
    Array.from({ length: CALLS }, () => {
      const file = `${workDirectory}/told`
      runCommand(program, args, { env: { ...node.environment, MODEKEEP_TOLD: file } })
      return JSON.parse(fs.readFileSync(file, 'utf8')) as Told
    })
  const text = [table('init', told(['init'])), table('a repeated mount', told(node.mountCall(tree, {})))].join('\n')
  node.unmount()
  return text
}

/** Imports are hoisted: between both moments is what the file itself does. */
const telling: Plugin = {
  name: 'telling',
  setup({ onLoad, initialOptions: { absWorkingDir = '' } }) {
    onLoad({ filter: /\.[jt]s$/ }, ({ path }) => {
      const text = fs.readFileSync(path, 'utf8')
      // CommonJS has no imports that would be hoisted.
      if (!/^(import|export)\b/m.test(text)) return undefined
      const moment = `globalThis.told?.moments.push([${JSON.stringify(path.slice(absWorkingDir.length + 1))}, Number(process.hrtime.bigint())]);`
      const contents = `${path === DRIVER_ENTRY_FILE ? START : ''}${moment}\n${text}\n;${moment}`
      return { contents, loader: extname(path) === '.ts' ? 'ts' : 'js' }
    })
  },
}

const START = `
if (process.env.MODEKEEP_TOLD) {
  const before = process.moduleLoadList.length
  globalThis.told = { moments: [] }
  process.on('exit', () => {
    globalThis.told.builtins = process.moduleLoadList.slice(before)
    process.getBuiltinModule('node:fs').writeFileSync(process.env.MODEKEEP_TOLD, JSON.stringify(globalThis.told))
  })
}
`

function table(call: string, calls: readonly Told[]): string {
  const times = new Map<string, number[]>()
  for (const { moments } of calls) {
    const began = new Map<string, number>()
    for (const [file, at] of moments) {
      const start = began.get(file)
      if (start === undefined) began.set(file, at)
      else times.set(file, [...(times.get(file) ?? []), (at - start) / 1000])
    }
  }
  const rows = [...times].map(([file, all]) => ({ file, time: median(all) })).sort((a, b) => b.time - a.time)
  const sum = rows.reduce((all, { time }) => all + time, 0)
  const builtins = calls[0]?.builtins.map((name) => name.replace('NativeModule ', '')) ?? []
  return [
    `${call}: ${rows.length} files evaluated in ${(sum / 1000).toFixed(1)} ms (medians of ${CALLS} calls)`,
    ...rows.slice(0, SHOWN).map(({ file, time }) => `${time.toFixed(0).padStart(8)} µs  ${file}`),
    `  loaded of Node's own: ${builtins.join(', ') || 'nothing'}`,
    '',
  ].join('\n')
}
