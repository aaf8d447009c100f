import * as fs from 'node:fs'

/** A file of an initial RAM disk. */
export interface InitrdFile {
  path: string
  content: Buffer
  mode: number
}

/** The guest's first process. */
const INIT_SCRIPT = `${import.meta.dirname}/guest/init.sh`

/** Writes an initial RAM disk with busybox and the guest's first process. */
export function writeInitrd(file: string, busybox: string): void {
  const files: InitrdFile[] = [
    { path: 'bin', content: Buffer.alloc(0), mode: 0o040755 },
    { path: 'bin/busybox', content: fs.readFileSync(busybox), mode: 0o100755 },
    { path: 'init', content: fs.readFileSync(INIT_SCRIPT), mode: 0o100755 },
  ]
  fs.writeFileSync(file, packInitrd(files))
}

/** Packs files in the order given, as an archive of cpio's format newc (kernel Documentation/driver-api/early-userspace). */
export function packInitrd(files: readonly InitrdFile[]): Buffer {
  const end = { path: 'TRAILER!!!', content: Buffer.alloc(0), mode: 0 }
  return Buffer.concat([...files, end].flatMap((file, index) => packEntry(file, index + 1)))
}

function packEntry({ path, content, mode }: InitrdFile, inode: number): Buffer[] {
  const name = Buffer.from(`${path}\0`)
  const [links, noTime, noDevice, noChecksum] = [1, 0, 0, 0]
  const fields = [inode, mode, 0, 0, links, noTime, content.length, ...Array(4).fill(noDevice), name.length, noChecksum]
  const header = Buffer.from(`070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`)
  return [padToFour(Buffer.concat([header, name])), padToFour(content)]
}

function padToFour(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)])
}
