import { createHash } from 'node:crypto'
import type { CarriedLibraries, DebianLibrary } from '../build/libraries.ts'
import { type Architecture, DEBIAN_ARCHITECTURES } from '../build/runtime.ts'
import type { BundledPackage } from './bundled.ts'

/** What an executable is made of. */
export interface ExecutableIngredients {
  version: string
  arch: Architecture
  /** In seconds since 1970. */
  time: number
  program: Buffer
  node: { version: string; bytes: Buffer; parts: Readonly<Record<string, string | undefined>> }
  carried: CarriedLibraries<DebianLibrary>
  packages: readonly BundledPackage[]
}

/** A CycloneDX 1.6 bill of materials: nothing in it but what it is made from, so that it can be made again. */
export function createExecutableSbom(ingredients: ExecutableIngredients): object {
  const { version, arch, time, program, packages } = ingredients
  const components = [
    createNodeComponent(ingredients),
    ...createLibraryComponents(ingredients),
    ...packages.map(createNpmComponent),
  ]
  const self = {
    type: 'application',
    'bom-ref': 'modekeep',
    name: 'modekeep',
    version,
    description: `Kubernetes FlexVolume driver, one executable for linux/${DEBIAN_ARCHITECTURES[arch]}`,
    hashes: [createSha256Hash(program)],
    licenses: [{ license: { id: 'Apache-2.0' } }],
  }
  return createSbomDocument(self, components, time)
}

/** What an image is made of, for each processor. */
export interface ImageIngredients {
  version: string
  /** In seconds since 1970. */
  time: number
  variants: readonly { arch: Architecture; program: Buffer; shell: BusyboxShell }[]
}

/** A static busybox, and the package it is of. */
export interface BusyboxShell {
  bytes: Buffer
  origin: { name: string; version: string }
}

/** The same of the image: the executables, which have bills of their own, and a shell for each. */
export function createImageSbom({ version, time, variants }: ImageIngredients): object {
  const components = variants.flatMap(({ arch, program, shell }) => [
    {
      type: 'application',
      'bom-ref': `modekeep-${DEBIAN_ARCHITECTURES[arch]}`,
      name: 'modekeep',
      version,
      description: `for linux/${DEBIAN_ARCHITECTURES[arch]}; what it is made of: modekeep-${version}-linux-${DEBIAN_ARCHITECTURES[arch]}.cdx.json`,
      hashes: [createSha256Hash(program)],
      licenses: [{ license: { id: 'Apache-2.0' } }],
    },
    createShellComponent(arch, shell),
  ])
  const self = {
    type: 'container',
    'bom-ref': 'modekeep-image',
    name: 'modekeep',
    version,
    description: 'The image that driver/kubernetes runs',
    licenses: [{ expression: 'Apache-2.0 AND GPL-2.0-only' }],
  }
  return createSbomDocument(self, components, time)
}

interface SbomComponent {
  type: string
  'bom-ref': string
  [key: string]: unknown
}

function createSbomDocument(self: SbomComponent, components: readonly SbomComponent[], time: number): object {
  const bom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(time * 1000).toISOString(),
      lifecycles: [{ phase: 'build' }],
      component: self,
    },
    components,
    dependencies: [
      { ref: self['bom-ref'], dependsOn: components.map((component) => component['bom-ref']) },
      ...components.map((component) => ({ ref: component['bom-ref'] })),
    ],
    compositions: [{ aggregate: 'complete', dependencies: [self['bom-ref']] }],
  }
  const { $schema, bomFormat, specVersion, ...rest } = bom
  return { $schema, bomFormat, specVersion, serialNumber: computeSbomSerial(bom), ...rest }
}

/** A UUID of version 8 (RFC 9562): of the content, since it is to be the same for the same content. */
function computeSbomSerial(bom: object): string {
  const bytes = createHash('sha256').update(JSON.stringify(bom)).digest().subarray(0, 16)
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x80, 6)
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8)
  return `urn:uuid:${bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')}`
}

function createSha256Hash(bytes: Buffer) {
  return { alg: 'SHA-256', content: createHash('sha256').update(bytes).digest('hex') }
}

/** Parts of Node's own: a hole in one of them is a hole here. Numbers of interfaces and of data are no parts; what was not built in has no version. */
const IGNORED_NODE_VERSIONS = new Set(['node', 'modules', 'napi', 'cldr', 'tz', 'unicode'])

function createNodeComponent({ node }: ExecutableIngredients) {
  const parts = Object.entries(node.parts).filter(([name, version]) => !IGNORED_NODE_VERSIONS.has(name) && version)
  return {
    type: 'platform',
    'bom-ref': `pkg:generic/node@${node.version}`,
    name: 'node',
    version: node.version,
    description: 'Node.js, without its debugging sections; its licence and those of its parts: licenses/node.txt',
    hashes: [createSha256Hash(node.bytes)],
    licenses: [{ license: { id: 'MIT' } }],
    cpe: `cpe:2.3:a:nodejs:node.js:${node.version}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/node@${node.version}`,
    components: parts.map(([name, version = '']) => ({
      type: 'library',
      'bom-ref': `pkg:generic/node@${node.version}#${name}`,
      name,
      version,
    })),
  }
}

/** A component for each of GCC's libraries, which are packages of their own, and one for the C library with its files. */
function createLibraryComponents({ arch, carried: { libraries, interpreter } }: ExecutableIngredients) {
  const isGlibc = (library: DebianLibrary) => library.origin.name === interpreter.origin.name
  const createGccComponent = (library: DebianLibrary) => ({
    ...createDebianComponent(arch, library.origin, { distro: 'debian-11', upstream: 'gcc-10' }),
    name: library.soname,
    hashes: [createSha256Hash(library.bytes)],
    licenses: [{ expression: 'GPL-3.0-or-later WITH GCC-exception-3.1' }],
  })
  const glibc = createDebianComponent(arch, interpreter.origin, { distro: 'debian-12', upstream: 'glibc' })
  return [
    ...libraries.filter((library) => !isGlibc(library)).map(createGccComponent),
    {
      ...glibc,
      name: 'glibc',
      licenses: [{ license: { id: 'LGPL-2.1-or-later' } }],
      cpe: `cpe:2.3:a:gnu:glibc:${interpreter.origin.version.replace(/-.*/, '')}:*:*:*:*:*:*:*`,
      pedigree: { notes: `${interpreter.soname} is changed: licenses/glibc/CHANGES` },
      components: [...libraries.filter(isGlibc), interpreter].map(({ soname, bytes }) => ({
        type: 'file',
        'bom-ref': `${glibc.purl}#${soname}`,
        name: soname,
        hashes: [createSha256Hash(bytes)],
      })),
    },
  ]
}

/** @param origin.upstream the source package */
function createDebianComponent(
  arch: Architecture,
  { name, version }: DebianLibrary['origin'],
  { distro, upstream }: { distro: string; upstream: string },
) {
  const qualifiers = `arch=${DEBIAN_ARCHITECTURES[arch]}&distro=${distro}&upstream=${upstream}`
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?${qualifiers}`
  return { type: 'library', 'bom-ref': purl, version, purl }
}

function createShellComponent(arch: Architecture, { bytes, origin: { name, version } }: BusyboxShell) {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${version}?arch=${DEBIAN_ARCHITECTURES[arch]}&distro=debian-12`
  return {
    type: 'application',
    'bom-ref': purl,
    name: 'busybox',
    version,
    hashes: [createSha256Hash(bytes)],
    licenses: [{ license: { id: 'GPL-2.0-only' } }],
    purl,
  }
}

function createNpmComponent({ name, version, license, integrity }: BundledPackage) {
  const [, group, base = name] = /^(@[^/]+)\/(.*)$/.exec(name) ?? []
  const purl = `pkg:npm/${group ? `${encodeURIComponent(group)}/` : ''}${base}@${version}`
  const hash = /^sha512-(.*)$/.exec(integrity ?? '')?.[1]
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group && { group }),
    name: base,
    version,
    ...(hash && { hashes: [{ alg: 'SHA-512', content: Buffer.from(hash, 'base64').toString('hex') }] }),
    licenses: [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }],
    purl,
  }
}
