import { getRawAsset } from 'node:sea'
import { Script } from 'node:vm'

// What the executable runs first. Node's own cache of it would have no function that is not called while it is evaluated.

const loadedScripts = new Map<string, { exports: unknown }>()

/** Runs, once, a script that the executable carries, with the code that was compiled of it when it was built. */
function runScript(name: string): unknown {
  const before = loadedScripts.get(name)
  if (before) return before.exports
  const text = Buffer.from(getRawAsset(name)).toString('latin1')
  const cachedData = Buffer.from(getRawAsset(`${name}.cache`))
  const module = { exports: {} }
  loadedScripts.set(name, module)
  new Script(text, { filename: name, cachedData }).runInThisContext()(module.exports, requireScript, module)
  return module.exports
}

function requireScript(name: string): unknown {
  return name.startsWith('./') ? runScript(name.slice(2)) : require(name)
}

runScript('modekeep.cjs')
