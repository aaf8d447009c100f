import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fs from 'fs-extra'
import { describe, expect, it } from 'vitest'
import { PT, readSegments } from '../../scripts/build/elf.ts'
import { versionNeeds } from '../../scripts/build/needed.ts'
import { buildProgram, LIBRARIES } from '../../scripts/build/program.ts'
import type { Architecture } from '../../scripts/build/runtime.ts'

const ROOT = join(import.meta.dirname, '../..')
const RUNTIME = join(ROOT, 'driver/runtime')
const OLDEST_GLIBC = '2.28'

const node = createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`)
const newest = (versions: string[]) => versions.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1)

describe('what the executable asks of a host', () => {
  const carried = ['x64', 'arm64'].flatMap((arch) =>
    LIBRARIES.map((name) => [`${arch}/${name}`, join(RUNTIME, arch, name)]),
  )
  const files = [['node', node], ...carried]
  it.each(files)(`%s needs no glibc newer than ${OLDEST_GLIBC}`, async (_name, path = '') => {
    const elf = await fs.readFile(path)
    const versions = versionNeeds(elf, readSegments(elf))
      .flatMap((need) => need.versions)
      .filter((version) => version.startsWith('GLIBC_'))
      .map((version) => version.slice('GLIBC_'.length))
    expect(versions.length).toBeGreaterThan(0)
    expect(newest([...versions, OLDEST_GLIBC])).toBe(OLDEST_GLIBC)
  })

  it.each(carried)('%s is the file whose origin driver/runtime/README.md tells', async (_name, path = '') => {
    const hash = createHash('sha256')
      .update(await fs.readFile(path))
      .digest('hex')
    expect(await fs.readFile(join(RUNTIME, 'README.md'), 'utf8')).toContain(hash)
  })

  it('is no library but those of glibc: the others are carried', async () => {
    const elf = await fs.readFile(node)
    const asked = versionNeeds(elf, readSegments(elf)).map((need) => need.library)
    const glibc = /^(ld-linux-[a-z0-9-]+\.so\.\d|lib(c|dl|m|pthread|rt)\.so\.\d)$/
    expect(asked.filter((library) => !glibc.test(library)).sort()).toEqual([...LIBRARIES].sort())
  })
})

describe('assembling', () => {
  it('gives the same bytes twice, started by the kernel itself', async () => {
    const workDirectory = await fs.mkdtemp(join(tmpdir(), 'modekeep-build-'))
    try {
      const entry = join(workDirectory, 'main.ts')
      await fs.writeFile(entry, 'const answer: object = { status: "Success" }\nconsole.log(JSON.stringify(answer))\n')
      const arch = process.arch as Architecture
      const first = await buildProgram(arch, entry)
      expect(first.equals(await buildProgram(arch, entry))).toBe(true)
      const loads = readSegments(first).filter((segment) => segment.type === PT.LOAD)
      expect(readSegments(first).some((segment) => segment.type === PT.INTERP)).toBe(false)
      expect(loads.map((load) => load.address)).toEqual(loads.map((load) => load.address).toSorted((a, b) => a - b))
    } finally {
      await fs.remove(workDirectory)
    }
  })
})
