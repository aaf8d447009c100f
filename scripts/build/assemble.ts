import {
  assertElfProgram,
  ELF_SEGMENT_FLAGS,
  ELF_SEGMENT_TYPES,
  type ElfSegment,
  encodeSegmentTable,
  readElfEntryAddress,
  readElfSegments,
  removeElfSections,
  writeElfEntryAddress,
  writeElfSegments,
} from './elf.ts'
import { encodeLoaderConfig, LIBRARY_SLOT_BYTES } from './layout.ts'
import { renameNeededLibraries } from './needed.ts'
import { createApplicationNote, enableNodeFuse } from './note.ts'
import { roundUpToMultiple, SegmentRegion } from './region.ts'

/** What the loader writes to a memory file of that name. */
interface CarriedFile {
  soname: string
  bytes: Buffer
}

export interface ExecutableParts {
  node: Buffer
  application: Buffer
  loader: Buffer
  /** Those that Node needs, and that they need. */
  libraries: readonly CarriedFile[]
  /** ld.so, which loads the libraries. */
  interpreter: CarriedFile
  /** Node's addon of driver/kernel. */
  kernel: CarriedFile
}

/**
 * Node without its debug sections, then two segments of our own: data (program headers for ld.so, application, libraries) and
 * the loader. Not `node --build-sea`: it writes all of .bss into the file and moves the program headers.
 */
export function assembleExecutable(parts: ExecutableParts): Buffer {
  const { node, application, loader, libraries } = parts
  assertElfProgram(node)
  const original = readElfSegments(node)
  const loads = original.filter((segment) => segment.type === ELF_SEGMENT_TYPES.LOAD)
  const end = Math.max(...loads.map((load) => load.offset + load.fileSize))
  const slots = growBssSegment(loads, libraries.length * LIBRARY_SLOT_BYTES)

  const data = new SegmentRegion(
    { offset: end, address: slots + libraries.length * LIBRARY_SLOT_BYTES },
    ELF_SEGMENT_FLAGS.R,
  )
  const headers = Buffer.alloc(encodeSegmentTable(original).length + 3 * encodeSegmentTable(loads.slice(0, 1)).length)
  const headersAt = data.add(headers, 16)
  const note = createApplicationNote(application)
  const noteAt = data.add(note, 16)
  const place = ({ soname, bytes }: CarriedFile) => ({
    soname,
    address: data.add(bytes, 0x1000).address,
    size: bytes.length,
  })
  const placed = libraries.map(place)
  const interpreter = place(parts.interpreter)
  const kernel = place(parts.kernel)

  const code = new SegmentRegion(data.end, ELF_SEGMENT_FLAGS.R | ELF_SEGMENT_FLAGS.X)
  const start = code.add(loader, 16).address
  const headerCount = original.length + 3
  code.add(
    encodeLoaderConfig({
      entry: readElfEntryAddress(node),
      headers: headersAt.address,
      headerCount,
      slots,
      libraries: placed,
      interpreter,
      kernel,
    }),
    16,
  )

  const noteSegment: ElfSegment = {
    type: ELF_SEGMENT_TYPES.NOTE,
    flags: ELF_SEGMENT_FLAGS.R,
    ...noteAt,
    fileSize: note.length,
    memorySize: note.length,
    align: 4,
  }
  const own = [data.segment, code.segment]
  const forInterpreter = insertLoadSegments(original, own).map((segment) =>
    segment.type === ELF_SEGMENT_TYPES.PHDR
      ? { ...segment, ...headersAt, fileSize: headers.length, memorySize: headers.length }
      : segment,
  )
  encodeSegmentTable([...forInterpreter, noteSegment]).copy(headers)

  const program = Buffer.alloc(roundUpToMultiple(code.end.offset, 16))
  node.copy(program, 0, 0, end)
  removeElfSections(program)
  enableNodeFuse(program)
  renameNeededLibraries(
    program,
    original,
    new Map(placed.map(({ soname }, index) => [soname, slots + index * LIBRARY_SLOT_BYTES])),
  )
  // Without PT_INTERP the kernel starts the loader; notes make room for the second new segment and mean nothing to it.
  const forKernel = original.filter(
    (segment) => segment.type !== ELF_SEGMENT_TYPES.INTERP && segment.type !== ELF_SEGMENT_TYPES.NOTE,
  )
  writeElfSegments(program, insertLoadSegments(forKernel, own))
  writeElfEntryAddress(program, start)
  data.writeTo(program)
  code.writeTo(program)
  return program
}

/** The loader writes the libraries' names where the zeroes of .bss end; returns that address. */
function growBssSegment(loads: ElfSegment[], size: number): number {
  const last = loads.at(-1)
  if (!last || !(last.flags & ELF_SEGMENT_FLAGS.W)) throw new Error("Node's last segment is not its writable one")
  const slots = roundUpToMultiple(last.address + last.memorySize, 16)
  last.memorySize = slots + size - last.address
  return slots
}

/** Behind the others of their kind: kernels expect rising addresses. */
function insertLoadSegments(segments: ElfSegment[], own: ElfSegment[]): ElfSegment[] {
  const at = segments.findLastIndex((segment) => segment.type === ELF_SEGMENT_TYPES.LOAD) + 1
  return segments.toSpliced(at, 0, ...own)
}
