/** Node looks for its application in a note of this name, and only when the mark behind the sentinel is 1. */
const NAME = 'NODE_SEA_BLOB'
const SENTINEL = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:'

export function noteOf(application: Buffer): Buffer {
  const size = Buffer.alloc(12)
  size.writeUInt32LE(NAME.length + 1, 0)
  size.writeUInt32LE(application.length, 4)
  return Buffer.concat([padded(size), padded(Buffer.from(`${NAME}\0`)), padded(application)])
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)])
}

export function lightFuse(program: Buffer): void {
  const at = program.indexOf(`${SENTINEL}0`)
  if (at < 0 || program.indexOf(SENTINEL, at + 1) >= 0)
    throw new Error('this Node does not hold the single executable sentinel exactly once')
  program[at + SENTINEL.length] = '1'.charCodeAt(0)
}
