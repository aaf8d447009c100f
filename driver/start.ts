import { getRawAsset } from 'node:sea'
import { Script } from 'node:vm'

// The executable's first script. Node's own code cache would lack every function that is not called during evaluation.

const loadedScripts = new Map<string, { exports: unknown }>()

/** Runs a script of the executable once, with the code that was compiled from it at build time. */
function runBundledScript(name: string): unknown {
  const cached = loadedScripts.get(name)
  if (cached) return cached.exports
  const text = Buffer.from(getRawAsset(name)).toString('latin1')
  const cachedData = Buffer.from(getRawAsset(`${name}.cache`))
  const module = { exports: {} }
  loadedScripts.set(name, module)
  new Script(text, { filename: name, cachedData }).runInThisContext()(module.exports, requireBundledScript, module)
  return module.exports
}

function requireBundledScript(name: string): unknown {
  return name.startsWith('./') ? runBundledScript(name.slice(2)) : require(name)
}

// Kubelet waits for the start of each call, so its verbs need no other script. main.ts knows all verbs.
const argv = process.argv.slice(2)
if (argv[0] === 'init' || argv[0] === 'mount' || argv[0] === 'unmount') {
  const { runKubeletCallAndExit } = runBundledScript('kubelet-call.cjs') as typeof import('./kubelet-call.ts')
  void runKubeletCallAndExit(argv)
} else runBundledScript('modekeep.cjs')
