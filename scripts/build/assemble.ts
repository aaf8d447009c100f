import {
  checkProgram,
  dropSections,
  entryOf,
  PF,
  PT,
  readSegments,
  type Segment,
  segmentTable,
  setEntry,
  writeSegments,
} from './elf.ts'
import { configBytes, SLOT_SIZE } from './layout.ts'
import { renameNeeded } from './needed.ts'
import { lightFuse, noteOf } from './note.ts'
import { Region, roundUp } from './region.ts'

/** What the loader writes to a memory file of that name. */
interface Carried {
  soname: string
  bytes: Buffer
}

export interface Parts {
  node: Buffer
  application: Buffer
  loader: Buffer
  libraries: readonly Carried[]
  /** Node's addon of driver/kernel. */
  kernel: Carried
}

/**
 * Node without its debug sections, then two segments of our own: data (program headers for ld.so, application, libraries) and
 * the loader. Not `node --build-sea`: it writes all of .bss into the file and moves the program headers.
 */
export function assemble({ node, application, loader, libraries, kernel }: Parts): Buffer {
  checkProgram(node)
  const original = readSegments(node)
  const loads = original.filter((segment) => segment.type === PT.LOAD)
  const end = Math.max(...loads.map((load) => load.offset + load.fileSize))
  const slots = growBss(loads, libraries.length * SLOT_SIZE)

  const data = new Region({ offset: end, address: slots + libraries.length * SLOT_SIZE }, PF.R)
  const headers = Buffer.alloc(segmentTable(original).length + 3 * segmentTable(loads.slice(0, 1)).length)
  const headersAt = data.add(headers, 16)
  const note = noteOf(application)
  const noteAt = data.add(note, 16)
  const place = ({ soname, bytes }: Carried) => ({
    soname,
    address: data.add(bytes, 0x1000).address,
    size: bytes.length,
  })
  const placed = libraries.map(place)
  const placedKernel = place(kernel)

  const code = new Region(data.end, PF.R | PF.X)
  const start = code.add(loader, 16).address
  const headerCount = original.length + 3
  code.add(
    configBytes({
      entry: entryOf(node),
      headers: headersAt.address,
      headerCount,
      slots,
      libraries: placed,
      kernel: placedKernel,
    }),
    16,
  )

  const noteSegment: Segment = {
    type: PT.NOTE,
    flags: PF.R,
    ...noteAt,
    fileSize: note.length,
    memorySize: note.length,
    align: 4,
  }
  const own = [data.segment, code.segment]
  const forInterpreter = withLoads(original, own).map((segment) =>
    segment.type === PT.PHDR
      ? { ...segment, ...headersAt, fileSize: headers.length, memorySize: headers.length }
      : segment,
  )
  segmentTable([...forInterpreter, noteSegment]).copy(headers)

  const program = Buffer.alloc(roundUp(code.end.offset, 16))
  node.copy(program, 0, 0, end)
  dropSections(program)
  lightFuse(program)
  renameNeeded(program, original, new Map(placed.map(({ soname }, index) => [soname, slots + index * SLOT_SIZE])))
  // Without PT_INTERP the kernel starts the loader; notes make room for the second new segment and mean nothing to it.
  const forKernel = original.filter((segment) => segment.type !== PT.INTERP && segment.type !== PT.NOTE)
  writeSegments(program, withLoads(forKernel, own))
  setEntry(program, start)
  data.writeTo(program)
  code.writeTo(program)
  return program
}

/** The loader writes the libraries' names where the zeroes of .bss end; returns that address. */
function growBss(loads: Segment[], size: number): number {
  const last = loads.at(-1)
  if (!last || !(last.flags & PF.W)) throw new Error("Node's last segment is not its writable one")
  const slots = roundUp(last.address + last.memorySize, 16)
  last.memorySize = slots + size - last.address
  return slots
}

/** Behind the others of their kind: kernels expect rising addresses. */
function withLoads(segments: Segment[], own: Segment[]): Segment[] {
  const at = segments.findLastIndex((segment) => segment.type === PT.LOAD) + 1
  return segments.toSpliced(at, 0, ...own)
}
