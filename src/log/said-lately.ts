import { type Fs, openToRead } from '../host/read-file.ts'

/** Bytes at the end of the log: what was said before is far from who reads there. */
const TAIL = 1 << 16
const LATELY = 60 * 60_000

/** How the line of a warning begins. When, and by which process, it was written is not what it says. */
const BEGINNING = /^\{"time":"([^"]*)","level":"warn","pid":\d+,/

/**
 * Whether the end of the log says what a warning's line does, within the last hour: kubelet repeats a call that fails
 * every two minutes. Read once, when first asked; what cannot be read says nothing. Never throws.
 */
export function saidLately(fs: Fs, file: string): (line: string) => boolean {
  let said: ReadonlyMap<string, number> | undefined
  return (line) => {
    said ??= warningsOf(tailOf(fs, file))
    const [beginning = ''] = BEGINNING.exec(line) ?? []
    const age = Date.now() - (said.get(line.slice(beginning.length)) ?? Number.NaN)
    // Where the clock was set back a line may be of the future, and would count for longer.
    return age >= 0 && age < LATELY
  }
}

/** What they say, and when they were written last. */
function warningsOf(lines: readonly string[]): Map<string, number> {
  const said = new Map<string, number>()
  for (const line of lines) {
    const [beginning, time = ''] = BEGINNING.exec(line) ?? []
    if (beginning !== undefined) said.set(line.slice(beginning.length), Date.parse(time))
  }
  return said
}

/** Whole lines, but perhaps the first. */
function tailOf(fs: Fs, file: string): string[] {
  try {
    using log = openToRead(fs, file)
    const { size } = log.stat
    const bytes = Buffer.alloc(Math.min(size, TAIL))
    const length = fs.readSync(log.fd, bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('utf8', 0, length).split('\n').slice(0, -1)
  } catch {
    return []
  }
}
