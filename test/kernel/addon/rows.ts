/**
 * `node rows.ts ADDON COUNT SEED`: makes random rows, most of them hostile, against driver/kernel in front of fake-kernel.c.
 * Prints the numbers of made and refused rows, and their calls.
 */
import type { KernelAddon } from '../../../src/kernel/linux/kernel.ts'
import { createRandom } from '../../helpers/numbers.ts'

const [file = '', count = '', seed = ''] = process.argv.slice(2)
const loaded = { exports: {} as KernelAddon }
process.dlopen(loaded, file)
const { arena, rows, calls, run } = loaded.exports

const COLUMNS = 8
const LAST = rows.length - COLUMNS
const SIZE = arena.byteLength
const NAMES = Object.keys(calls)
const bytes = new Uint8Array(arena)
const words = new DataView(arena)

const next = createRandom(Number(seed))
const below = (end: number) => Math.floor(next() * end)
const random = () => below(2 ** 32)

const EDGES = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -0,
  -1,
  0.5,
  1e-320,
  2 ** 31,
  2 ** 31 - 1,
  -(2 ** 31),
  -(2 ** 31) - 1,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 32 + 1,
  2 ** 47,
  2 ** 52 + 0.5,
  2 ** 53,
  2 ** 63,
  2 ** 64,
  -(2 ** 63),
  1e308,
  SIZE,
  SIZE + 1,
  SIZE - 1,
  -SIZE,
  'a string',
  undefined,
  '7',
  [],
  true,
] as number[]
const anyBits = new DataView(new ArrayBuffer(8))
const SIZES = [1, 4, 8, 16, 17, 24, 32, 112, 120, 232, 256, 304, 1024]
const SMALL = 250

function hostile(): number {
  switch (below(4)) {
    case 0:
      return EDGES[below(EDGES.length)] as number
    case 1:
      // Offsets at which a structure just fits, or just does not.
      return SIZE - (SIZES[below(SIZES.length)] as number) + below(3) - 1
    case 2:
      return below(2 * SIZE) - SIZE / 2
    default:
      anyBits.setUint32(0, random())
      anyBits.setUint32(4, random())
      return anyBits.getFloat64(0)
  }
}

function fail(what: string): never {
  console.error(`${what}: seed ${seed}, row ${[...rows.subarray(0, COLUMNS)]}, passed ${[...rows.subarray(LAST)]}`)
  process.exit(1)
}

/** Checks that fake-kernel.c received the values of the row. */
function compare(): void {
  const result = rows[LAST + 7] as number
  for (let index = 0; index < 6; index++) {
    if (((result >> index) & 1) === 0) continue
    const given = rows[1 + index] as number
    const passed = rows[LAST + 1 + index] as number
    if (!Number.isInteger(given)) fail(`argument ${index} is no whole number`)
    const isWide = result >> 6 === 1 && index === 1
    const wanted = isWide ? Number(words.getBigInt64(given, true)) : given
    if (passed !== wanted) fail(`argument ${index} is another`)
  }
}

function throws(argument: unknown): boolean {
  try {
    run(argument as number)
    return false
  } catch (error) {
    return error instanceof RangeError
  }
}

for (const argument of [undefined, null, 'x', '1', Number.NaN, 0, -1, 0.5, rows.length, 2 ** 53, {}, Symbol('x'), 1n])
  if (!throws(argument)) fail(`run takes ${String(argument)}`)

const made = new Set<number>()
let [passed, refused] = [0, 0]
for (let turn = 0; turn < Number(count); turn++) {
  if (turn % 4096 === 0) {
    // Fills long stretches without a NUL, half of the time to the end of the arena.
    for (let at = 0; at < SIZE; at += 4) words.setUint32(at, random() | 0x01010101)
    for (let zeroes = below(16); zeroes > 0; zeroes--) bytes[below(SIZE)] = 0
    bytes[SIZE - 1] = below(2)
  }
  // Ends a name. Small numbers serve as names, structures and lengths.
  bytes[SMALL] = 0
  rows[0] = below(64) === 0 ? hostile() : below(NAMES.length + 1)
  const call = rows[0]
  let isPlain = NAMES[call] !== undefined
  for (let index = 1; index < 7; index++) {
    const isHostile = below(4) === 0
    isPlain &&= !isHostile
    rows[index] = isHostile ? hostile() : below(SMALL)
  }
  rows[7] = 1
  rows[LAST + 7] = 0
  run(1)
  if (rows[7] === 0) {
    passed++
    if (NAMES[call] === undefined) fail('made')
    made.add(call)
    compare()
  } else if (Number.isNaN(rows[7] as number)) {
    refused++
    if (isPlain) fail('refused')
  } else fail('neither made nor refused')
}
console.log(JSON.stringify({ passed, refused, never: NAMES.filter((_, index) => !made.has(index)) }))
