import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs a command that ends with this process, by a signal or a crash.
 * @param end the signal for the command: one that has its own namespaces takes all processes in them along when it is killed,
 * one that has to tidy up first is asked to end
 * @param print gets each line of its output; undefined: its output is this process's
 * @returns its exit status, 130 where it was ended
 */
export function runConfined(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  end: 'SIGKILL' | 'SIGTERM' = 'SIGKILL',
  print?: (line: string) => void,
): Promise<number> {
  const output = print ? 'pipe' : 'inherit'
  const child = spawn('setpriv', ['--pdeathsig', end.slice('SIG'.length), ...args], {
    stdio: ['inherit', output, output],
    env,
  })
  for (const stream of [child.stdout, child.stderr]) {
    if (print && stream) createInterface(stream).on('line', print)
  }
  let isEnding = false
  const stop = () => {
    if (!isEnding && end === 'SIGKILL') console.log('interrupted: everything of the run is ended and removed')
    isEnding = true
    child.kill(end)
  }
  for (const signal of ENDING) process.on(signal, stop)
  return new Promise<number>((done, failed) => {
    child.once('error', failed)
    child.once('close', (code) => done(isEnding ? 130 : (code ?? 130)))
  }).finally(() => {
    for (const signal of ENDING) process.off(signal, stop)
  })
}
