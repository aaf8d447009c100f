import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import about from '../../package.json' with { type: 'json' }
import { provideClients } from '../../scripts/fetch/clients.ts'
import { provideSkopeo } from '../../scripts/fetch/packages.ts'
import { createReleaseChart } from '../../scripts/release/chart.ts'
import { createChart, renderChart, runHelm } from '../helm/template.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'
import { EPOCH } from './made.ts'

const place = fs.mkdtempSync(join(tmpdir(), 'modekeep-release-chart-'))
afterAll(() => fs.rmSync(place, { recursive: true, force: true }))

const files = createReleaseChart(about.version, EPOCH)
for (const { path, bytes } of files) fs.writeFileSync(join(place, path), bytes)
const chart = join(place, `modekeep-${about.version}.tgz`)
const archive = join(place, `modekeep-${about.version}-chart.tar`)

describe('the chart of a release', () => {
  it('has the same bytes in every build, and the time of the sources', () => {
    expect(files.map(({ path }) => join(place, path))).toEqual([chart, archive])
    expect(createReleaseChart(about.version, EPOCH)).toEqual(files)
    const tar = gunzipSync(fs.readFileSync(chart))
    const listed = execFileSync('tar', ['-tv', '--utc', '--numeric-owner'], { input: tar, encoding: 'utf8' })
    const rows = listed.trim().split('\n')
    expect(rows.filter((row) => !/ 0\/0 .* 2023-11-14 22:13(:20)? modekeep\//.test(row))).toEqual([])
  })

  it('is refused if Chart.yaml has another version', () => {
    expect(() => createReleaseChart('9.9.9', EPOCH)).toThrow('Chart.yaml has version')
  })

  it('is an OCI layout with the media types of Helm', () => {
    const layout = join(place, 'layout')
    fs.mkdirSync(layout)
    execFileSync('tar', ['-xf', archive, '-C', layout])
    const blob = ({ digest, size }: { digest: string; size: number }) => {
      const bytes = fs.readFileSync(join(layout, 'blobs', digest.replace(':', '/')))
      const sum = createHash('sha256').update(bytes).digest('hex')
      expect([`sha256:${sum}`, bytes.length]).toEqual([digest, size])
      return bytes
    }
    const index = JSON.parse(fs.readFileSync(join(layout, 'index.json'), 'utf8'))
    const [top] = index.manifests
    expect(top.annotations).toEqual({ 'org.opencontainers.image.ref.name': about.version })
    const { config, layers } = JSON.parse(String(blob(top)))
    expect(config.mediaType).toBe('application/vnd.cncf.helm.config.v1+json')
    expect(JSON.parse(String(blob(config)))).toMatchObject({ name: 'modekeep', version: about.version })
    expect(layers).toHaveLength(1)
    expect(layers[0].mediaType).toBe('application/vnd.cncf.helm.chart.content.v1.tar+gzip')
    expect(blob(layers[0]).equals(fs.readFileSync(chart))).toBe(true)
  })
})

const noHelm = explainUnavailable(provideClients)

describe.skipIf(noHelm)(`helm${noHelm && ` (${noHelm})`}`, () => {
  it('finds no fault in the archive, and renders it as the directory', () => {
    expect(runHelm('lint', '--strict', chart)).toMatchObject({ status: 0 })
    expect(renderChart(chart, {})).toEqual(renderChart(createChart(), {}))
  })
})

const noSkopeo = explainUnavailable(provideSkopeo)

describe.skipIf(noSkopeo)(`skopeo${noSkopeo && ` (${noSkopeo})`}`, () => {
  it('copies the OCI archive with its digest', () => {
    const { skopeo, libraries } = provideSkopeo()
    const policy = join(place, 'policy.json')
    fs.writeFileSync(policy, '{"default":[{"type":"insecureAcceptAnything"}]}')
    const env = { ...process.env, LD_LIBRARY_PATH: libraries }
    const options = ['--policy', policy, '--tmpdir', place]
    const args = ['copy', '--preserve-digests', `oci-archive:${archive}`, `oci:${place}/copied:1`]
    execFileSync(skopeo, [...options, ...args], { env, stdio: 'pipe' })
    const digests = (directory: string) =>
      JSON.parse(fs.readFileSync(join(place, directory, 'index.json'), 'utf8')).manifests.map(
        ({ digest }: { digest: string }) => digest,
      )
    expect(digests('copied')).toEqual(digests('layout'))
  })
})
