/** Node looks for its application in a note of this name, and only when the mark behind the sentinel is 1. */
const NODE_BLOB_NOTE_NAME = 'NODE_SEA_BLOB'
const NODE_FUSE_SENTINEL = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:'

export function createApplicationNote(application: Buffer): Buffer {
  const size = Buffer.alloc(12)
  size.writeUInt32LE(NODE_BLOB_NOTE_NAME.length + 1, 0)
  size.writeUInt32LE(application.length, 4)
  return Buffer.concat([
    padToFourBytes(size),
    padToFourBytes(Buffer.from(`${NODE_BLOB_NOTE_NAME}\0`)),
    padToFourBytes(application),
  ])
}

function padToFourBytes(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)])
}

export function enableNodeFuse(program: Buffer): void {
  const at = program.indexOf(`${NODE_FUSE_SENTINEL}0`)
  if (at < 0 || program.indexOf(NODE_FUSE_SENTINEL, at + 1) >= 0)
    throw new Error('this Node does not hold the single executable sentinel exactly once')
  program[at + NODE_FUSE_SENTINEL.length] = '1'.charCodeAt(0)
}
