import fc, { type Arbitrary } from 'fast-check'
import type { MountRow } from '../../src/kernel/mount-table/mountinfo.ts'

/** A path or name as the kernel has it: bytes, no NUL. */
const bytes = fc.uint8Array({ min: 1, max: 255, minLength: 1, maxLength: 12 }).map((list) => Buffer.from(list))
const odd = fc.constantFrom(
  ...['a b', 'a\tb', 'a\nb', 'a\\b', '\\040', 'é', '#', '-', '//deleted'].map((s) => Buffer.from(s)),
)
const name = fc.oneof(odd, bytes, fc.constantFrom(...['a', 'pods', 'v'].map((s) => Buffer.from(s))))

/** A row with its paths as bytes. */
export type ByteRow = Omit<MountRow, 'root' | 'mountPoint' | 'source'> &
  Record<'root' | 'mountPoint' | 'source', Buffer>

const path = fc
  .array(
    name.map((one) => Buffer.from(one.map((byte) => (byte === 0x2f ? 0x2e : byte)))),
    { maxLength: 4 },
  )
  .map((names) =>
    Buffer.concat([Buffer.from('/'), ...names.flatMap((one, n) => (n > 0 ? [Buffer.from('/'), one] : [one]))]),
  )

const id = fc.nat({ max: 12 })
const word = fc.stringMatching(/^[a-z][a-z0-9.:=]{0,8}$/)

export const byteRows: Arbitrary<ByteRow[]> = fc.array(
  fc.record({
    id,
    parent: id,
    device: fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 9 })).map(([major, minor]) => `${major}:${minor}`),
    root: path,
    mountPoint: path,
    options: fc.subarray(['rw', 'ro', 'nosuid', 'relatime'], { minLength: 1 }),
    propagation: fc.subarray(['shared:7', 'master:1', 'unbindable']),
    fsType: word,
    source: fc.oneof(name, fc.constant(Buffer.alloc(0))),
    superOptions: fc.array(word, { minLength: 1, maxLength: 3 }),
  }),
  { maxLength: 12 },
)

// fs/proc_namespace.c: show_mountinfo escapes paths by " \t\n\\", a source by "#" too.
function escaped(field: Buffer, characters: string): Buffer {
  return Buffer.concat(
    [...field].map((byte) =>
      characters.includes(String.fromCharCode(byte))
        ? Buffer.from(`\\${byte.toString(8).padStart(3, '0')}`)
        : Buffer.of(byte),
    ),
  )
}

/** The bytes of /proc/self/mountinfo, as the kernel writes them. */
export function kernelText(rows: readonly ByteRow[]): Buffer {
  return Buffer.concat(
    rows.flatMap((row) => [
      Buffer.from(`${row.id} ${row.parent} ${row.device} `),
      escaped(row.root, ' \t\n\\'),
      Buffer.from(' '),
      escaped(row.mountPoint, ' \t\n\\'),
      Buffer.from(` ${[row.options.join(), ...row.propagation, '-', row.fsType].join(' ')} `),
      escaped(row.source, ' \t\n\\#'),
      Buffer.from(` ${row.superOptions.join()}\n`),
    ]),
  )
}

/** What modekeep is to make of a row: text, with U+FFFD for what is none. */
export function asText(row: ByteRow): MountRow {
  return { ...row, root: row.root.toString(), mountPoint: row.mountPoint.toString(), source: row.source.toString() }
}
