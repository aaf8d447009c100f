import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { provideContainerRuntime, provideSkopeo } from '../../scripts/fetch/packages.ts'
import { createOciArchive } from '../../scripts/image/oci.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'

const place = fs.mkdtempSync(join(tmpdir(), 'modekeep-oci-'))
afterAll(() => fs.rmSync(place, { recursive: true, force: true }))

const IMAGE = { name: 'a:1', command: ['/file'], labels: { 'org.opencontainers.image.title': 'a' } }
const variants = (['x64', 'arm64'] as const).map((arch) => ({
  arch,
  files: [{ path: 'file', bytes: Buffer.from(`for ${arch}`), mode: 0o755 }],
}))
const { archive, index } = createOciArchive(IMAGE, variants)
const digest = `sha256:${sha256(index)}`
const file = join(place, 'image.tar')
fs.writeFileSync(file, archive)

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

describe('an image for both processors', () => {
  const unpacked = join(place, 'unpacked')
  fs.mkdirSync(unpacked)
  execFileSync('tar', ['-xf', file, '-C', unpacked])
  const read = (path: string) => fs.readFileSync(join(unpacked, path))
  const parsed = (path: string) => JSON.parse(String(read(path)))
  const blob = (of: { digest: string; size: number }) => {
    const bytes = read(`blobs/${of.digest.replace(':', '/')}`)
    expect([`sha256:${sha256(bytes)}`, bytes.length]).toEqual([of.digest, of.size])
    return bytes
  }

  it('is an OCI layout whose parts have their digests and sizes', () => {
    expect(parsed('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' })
    const [top, ...others] = parsed('index.json').manifests
    expect(others).toEqual([])
    expect(top).toMatchObject({ digest, annotations: { 'io.containerd.image.name': 'docker.io/library/a:1' } })
    expect(blob(top).equals(index)).toBe(true)
    const { manifests } = JSON.parse(String(index))
    expect(manifests.map(({ platform }: { platform: object }) => platform)).toEqual([
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ])
    for (const [at, of] of manifests.entries()) {
      const { config, layers } = JSON.parse(String(blob(of)))
      const layer = gunzipSync(blob(layers[0]))
      const { architecture, rootfs } = JSON.parse(String(blob(config)))
      expect([architecture, rootfs.diff_ids]).toEqual([of.platform.architecture, [`sha256:${sha256(layer)}`]])
      expect(layer.includes(`for ${variants[at]?.arch}`)).toBe(true)
    }
  })

  it("has docker's list with one tag for each processor, of the same files", () => {
    const list = parsed('manifest.json')
    expect(list.map(({ RepoTags }: { RepoTags: string[] }) => RepoTags)).toEqual([['a:1-amd64'], ['a:1-arm64']])
    for (const { Config, Layers, RepoTags } of list) {
      const { architecture, rootfs } = parsed(Config)
      expect(RepoTags[0]).toBe(`a:1-${architecture}`)
      expect(rootfs.diff_ids).toEqual([`sha256:${sha256(gunzipSync(read(Layers[0])))}`])
    }
  })

  it('has the same bytes in every build', () => {
    const again = createOciArchive(IMAGE, variants)
    expect([again.archive.equals(archive), again.index.equals(index)]).toEqual([true, true])
  })
})

const noRuntime =
  process.getuid?.() === 0 ? explainUnavailable(provideContainerRuntime) : 'skipped: needs root; run "sudo npm test"'

describe.skipIf(noRuntime)(`containerd${noRuntime && ` (${noRuntime})`}`, () => {
  it('imports the image under the name that kubelet uses, and by its digest if requested', {
    timeout: 120_000,
  }, () => {
    const { path } = provideContainerRuntime()
    const own = fs.mkdtempSync(join(place, 'containerd-'))
    const alone = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc']
    const script = join(import.meta.dirname, 'oci.sh')
    const env = { ...process.env, PATH: `${path}:${process.env.PATH}` }
    const rows = execFileSync('unshare', [...alone, 'sh', script, file, own], { env, encoding: 'utf8' })
      .trim()
      .split('\n')
    const images = rows.map((row) => row.split(/\s+/)).map(([name, , sum, , , platforms]) => [name, sum, platforms])
    const platforms = 'linux/amd64,linux/arm64'
    expect(images).toContainEqual(['docker.io/library/a:1', digest, platforms])
    expect(images).toContainEqual([`docker.io/library/a@${digest}`, digest, platforms])
  })
})

const noSkopeo = explainUnavailable(provideSkopeo)

describe.skipIf(noSkopeo)(`skopeo${noSkopeo && ` (${noSkopeo})`}`, () => {
  function skopeo(...args: string[]): string {
    const { skopeo: program, libraries } = provideSkopeo()
    const policy = join(place, 'policy.json')
    fs.writeFileSync(policy, '{"default":[{"type":"insecureAcceptAnything"}]}')
    const env = { ...process.env, LD_LIBRARY_PATH: libraries }
    const whole = ['--policy', policy, '--tmpdir', place, ...args]
    return execFileSync(program, whole, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  it('copies the image completely, and keeps its digest', () => {
    skopeo('copy', '--all', '--preserve-digests', `oci-archive:${file}`, `oci:${place}/copied:1`)
    const [copied] = JSON.parse(fs.readFileSync(`${place}/copied/index.json`, 'utf8')).manifests
    expect(copied.digest).toBe(digest)
  })

  it.each(['amd64', 'arm64'])('reads the same image as docker load, for %s', (arch) => {
    const { Architecture, Name } = JSON.parse(skopeo('inspect', `docker-archive:${file}:a:1-${arch}`))
    expect([Architecture, Name]).toEqual([arch, 'docker.io/library/a'])
  })
})
