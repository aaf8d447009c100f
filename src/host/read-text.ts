import * as nodeFs from 'node:fs'

type Fs = Pick<typeof nodeFs, 'closeSync' | 'openSync' | 'readFileSync'>

/** A file as text. Given a path, readFileSync itself would end the process, without an answer, where close(2) fails. */
export function readText(path: string, fs: Fs = nodeFs): string {
  const fd = fs.openSync(path, 'r')
  try {
    return fs.readFileSync(fd, 'utf8')
  } finally {
    fs.closeSync(fd)
  }
}
