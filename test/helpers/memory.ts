import * as fs from 'node:fs'

/** In KiB: what no other process has, and files, the executable above all, of which each page counts once in all the processes. */
export interface UsedMemory {
  own: number
  files: number
  processes: number
}

/**
 * Adds up the memory of the processes that have a directory in their environment.
 * @param word the first argument of those that count, if not all
 */
export function measureMemory(top: string, word?: string): UsedMemory {
  const all = measureEachProcess(top, word)
  const sum = (key: 'own' | 'files') => all.reduce((total, one) => total + one[key], 0)
  return { own: sum('own'), files: sum('files'), processes: all.length }
}

export const sumMemory = ({ own, files }: Pick<UsedMemory, 'own' | 'files'>) => own + files

/** The memory of each of them. */
export function measureEachProcess(
  top: string,
  word?: string,
): (Pick<UsedMemory, 'own' | 'files'> & { pid: number })[] {
  return fs.readdirSync('/proc').flatMap((pid) => (/^\d+$/.test(pid) ? of(pid, top, word) : []))
}

/** By proportional set sizes (proc(5), smaps_rollup): a page of several processes is divided among them. */
function of(pid: string, top: string, word: string | undefined): ReturnType<typeof measureEachProcess> {
  try {
    if (!fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(top)) return []
    if (word !== undefined && fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1] !== word) return []
    const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    const size = (key: string) => Number(new RegExp(`^${key}: +(\\d+)`, 'm').exec(text)?.[1])
    return [{ pid: Number(pid), own: size('Pss_Anon') + size('Pss_Shmem'), files: size('Pss_File') }]
  } catch {
    return []
  }
}
