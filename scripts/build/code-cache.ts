/** `node code-cache.ts SCRIPT CACHE [FROM-TO ...]`: V8's code cache of a script, with every function in these lines. */
import * as fs from 'node:fs'
import { Session } from 'node:inspector'
import { Script } from 'node:vm'

const [name = '', cache = '', ...ranges] = process.argv.slice(2)
const bundledScript = new Script(fs.readFileSync(name, 'latin1'), { filename: name })
const compiledScript = bundledScript.runInThisContext()
if (typeof compiledScript !== 'function') throw new Error(`${name} is not wrapped in a function`)
if (ranges.length > 0) compileAllFunctions()
fs.writeFileSync(cache, bundledScript.createCachedData())

/** V8 compiles a function when it is called, and to say where one could stop in it: nothing of the script runs here. */
function compileAllFunctions(): void {
  const session = new Session()
  session.connect()
  let scriptId = ''
  session.on('Debugger.scriptParsed', ({ params }) => {
    if (params.url === name) scriptId = params.scriptId
  })
  session.post('Debugger.enable')
  for (const range of ranges) {
    const [start, end] = range.split('-').map((line) => ({ scriptId, lineNumber: Number(line), columnNumber: 0 }))
    if (start === undefined) throw new Error(`no lines: ${range}`)
    session.post('Debugger.getPossibleBreakpoints', { start, ...(end && { end }) }, (error) => {
      if (error) throw new Error(`${name}, ${range}: ${error.message}`)
    })
  }
  session.post('Debugger.disable')
  session.disconnect()
}
