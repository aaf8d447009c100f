import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ELF_SEGMENT_TYPES, readElfSegments } from '../../scripts/build/elf.ts'
import { provideDebianLibraries } from '../../scripts/build/libraries.ts'
import { buildProgram, DRIVER_ENTRY_FILE } from '../../scripts/build/program.ts'
import { type Architecture, provideNodePackage } from '../../scripts/build/runtime.ts'
import { sized } from '../helpers/size.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'
import { EmulatedRoot, lacking } from './emulator.ts'
import { MODEKEEP, reply } from './modekeep.ts'

const arch: Architecture = process.arch === 'x64' ? 'arm64' : 'x64'
/** elf(5), e_machine. */
const MACHINE = { x64: 62, arm64: 183 } as const

const unavailable = explainUnavailable(() => provideDebianLibraries(arch))

let program: Buffer
beforeAll(async () => {
  if (!unavailable) program = await buildProgram(arch, DRIVER_ENTRY_FILE)
}, 300_000)

const machineOf = (elf: Buffer) => elf.readUInt16LE(18)

describe.skipIf(unavailable)(`the executable for ${arch}, built here${unavailable && ` (${unavailable})`}`, () => {
  it('has code for that processor in every part: Node, loader, libraries', async () => {
    expect(machineOf(program)).toBe(MACHINE[arch])
    const { libraries, interpreter } = provideDebianLibraries(arch)
    for (const { soname, bytes } of [...libraries, interpreter]) {
      expect(machineOf(bytes), soname).toBe(MACHINE[arch])
      expect(program.includes(bytes), soname).toBe(true)
    }
    const node = fs.readFileSync(join(await provideNodePackage(arch), 'bin/node'))
    expect(machineOf(node)).toBe(MACHINE[arch])
    const text = readElfSegments(node).filter(({ type, flags }) => type === ELF_SEGMENT_TYPES.LOAD && flags === 5)
    expect(text).toHaveLength(1)
    for (const { offset, fileSize } of text) {
      expect(program.subarray(offset, offset + fileSize).equals(node.subarray(offset, offset + fileSize))).toBe(true)
    }
  })

  it("has modekeep's loader as entry point and no ELF interpreter", () => {
    const loader = fs.readFileSync(join(import.meta.dirname, `../../driver/loader/${arch}.bin`))
    const entry = Number(program.readBigUInt64LE(24))
    const segments = readElfSegments(program)
    const home = segments.find(
      ({ type, address, fileSize }) =>
        type === ELF_SEGMENT_TYPES.LOAD && entry >= address && entry < address + fileSize,
    )
    const at = entry - (home?.address ?? 0) + (home?.offset ?? 0)
    expect(program.subarray(at, at + loader.length).equals(loader)).toBe(true)
    expect(segments.some(({ type }) => type === ELF_SEGMENT_TYPES.INTERP)).toBe(false)
  })

  it('carries the application without the code cache of this processor', () => {
    const note = program.indexOf('NODE_SEA_BLOB\0\0\0')
    expect(note).toBeGreaterThan(0)
    // Magic number and flags of Node's blob (node_sea.cc): 1 no warning, 4 code cache, 8 assets.
    const blob = program.subarray(note + 16)
    expect(blob.readUInt32LE(0)).toBe(0x143da20)
    expect(blob.readUInt32LE(4) & 4).toBe(0)
    expect(blob.includes('modekeep has no verb')).toBe(true)
    expect(blob.includes('mount-watch.cjs')).toBe(true)
    expect(program.includes('NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:1')).toBe(true)
  })
})

const reason = unavailable || lacking(arch)
if (reason) console.warn(`${arch}: ${reason}`)

describe.skipIf(reason)(
  `the executable for ${arch}, emulated, in an empty root directory${reason && ` (${reason})`}`,
  () => {
    const directory = '/pods/p/volumes/modekeep~fs/v'
    let node: EmulatedRoot
    beforeAll(() => {
      node = new EmulatedRoot(arch, program)
      fs.mkdirSync(join(node.root, directory), { recursive: true })
      const config = { stateDir: '/state', logFile: '/log', allow: [{ sources: ['/srv/*'] }] }
      fs.writeFileSync(join(node.root, 'config.json'), JSON.stringify(config))
    })
    afterAll(() => node?.remove())

    // A start takes seconds here.
    const answered: [verb: string, args: string[]][] = [
      ['mount', [directory, 'no JSON']],
      ['mount', [directory, '{"source":"/etc","ownership":"no"}']],
      ['attach', ['{}']],
      ['init', []],
    ]
    it.each(sized(answered.slice(0, 1), answered))(
      "replies to kubelet's %s like the executable for this processor",
      (verb, args) => {
        const env = { MODEKEEP_CONFIG: join(node.root, 'config.json') }
        const answer = reply([verb, ...args], { env })
        expect(node.run([verb, ...args])).toEqual({ status: 0, output: `${JSON.stringify(answer)}\n` })
      },
    )

    it('prints its version and its mounts', () => {
      expect(node.run(['version'])).toEqual({
        status: 0,
        output: execFileSync(MODEKEEP, ['version'], { encoding: 'utf8' }),
      })
      const { status, output } = node.run(['status', '--json'])
      expect({ status, document: JSON.parse(output) }).toMatchObject({
        status: 0,
        document: { apiVersion: 'modekeep/v1', kind: 'Status', mounts: [] },
      })
    })

    it('mounts, or names the system call that the emulator lacks, leaves nothing, and logs it', () => {
      const answer = JSON.parse(node.run(['mount', directory, '{"source":"/srv/data"}']).output)
      // QEMU 7.2 (Debian 12) knows neither open_tree nor fsopen.
      if (answer.status !== 'Success')
        expect(answer.message).toMatch(/open_tree the source: ENOSYS .*needs Linux 5\.12/)
      console.log(`${arch} emulated, mount: ${JSON.stringify(answer)}`)
      expect(node.run(['unmount', directory])).toEqual({ status: 0, output: '{"status":"Success"}\n' })
      expect(fs.readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(`${node.root}${directory}`)
      const lines = fs
        .readFileSync(join(node.root, 'log'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(lines.slice(-2).map(({ verb, outcome }) => [verb, outcome])).toEqual([
        ['mount', answer.status],
        ['unmount', 'Success'],
      ])
    })
  },
)
