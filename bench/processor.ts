import * as fs from 'node:fs'

const NANOSECONDS = 1e6

/** Of all threads of the processes, ms: the first number of proc(5)'s schedstat is nanoseconds on a processor. One that has ended has none. */
export function readProcessorMs(pids: readonly (number | undefined)[]): number {
  const spent = pids.flatMap((pid) => {
    try {
      const threads = fs.readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`)
      return threads.map((thread) => Number(fs.readFileSync(`${thread}/schedstat`, 'utf8').split(' ')[0]))
    } catch {
      return []
    }
  })
  return spent.reduce((all, some) => all + some, 0) / NANOSECONDS
}
