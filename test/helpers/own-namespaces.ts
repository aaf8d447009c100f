import { spawn } from 'node:child_process'

/**
 * Runs a command that makes namespaces of its own and is the first of them to be ended: everything of the run dies with
 * this process, however that ends, and when it is told to end.
 * @returns its exit status, 130 where it was ended
 */
export function runConfined(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...args], { stdio: 'inherit', env })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      console.log('interrupted: everything of the run is ended and removed')
      child.kill('SIGKILL')
    })
  }
  return new Promise((done, failed) => {
    child.once('error', failed)
    child.once('exit', (code) => done(code ?? 130))
  })
}
