import * as fs from 'node:fs'

/** A file of an initial RAM disk. */
export interface InitrdFile {
  path: string
  content: Buffer
  mode: number
}

/** The guest's first process. */
const INIT_SCRIPT = `${import.meta.dirname}/guest/init.sh`

/** Writes an initial RAM disk with busybox, the guest's first process, and files with their paths in it. */
export function writeInitrd(file: string, busybox: string, more: ReadonlyMap<string, Buffer> = new Map()): void {
  const contents = new Map([['bin/busybox', fs.readFileSync(busybox)], ...more])
  const directories = new Set([...contents.keys()].flatMap(listParents))
  const files: InitrdFile[] = [
    ...[...directories].map((path) => ({ path, content: Buffer.alloc(0), mode: 0o040755 })),
    ...[...contents].map(([path, content]) => ({ path, content, mode: 0o100755 })),
    { path: 'init', content: fs.readFileSync(INIT_SCRIPT), mode: 0o100755 },
  ]
  fs.writeFileSync(file, packInitrd(files))
}

/** Lists the directories of a relative path, the outermost first. */
function listParents(path: string): string[] {
  const names = path.split('/').slice(0, -1)
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
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
