import { gzipSync } from 'node:zlib'
import { parse } from 'yaml'
import { createTarArchive } from '../../src/cli/output/tar.ts'
import { createTreeEntries, type TreeFile } from '../archive/tree.ts'
import { createChartFiles } from '../chart/files.ts'
import { encodeJson, OciLayout } from '../image/oci-layout.ts'
import type { ReleaseFile } from './archive.ts'

/**
 * Returns the chart as Helm's archive, and as an OCI archive with the manifest that `helm push` creates.
 * @param timeSeconds the time of all files, in seconds since 1970
 * @throws {Error} if Chart.yaml has another version
 */
export function createReleaseChart(version: string, timeSeconds: number): ReleaseFile[] {
  const files = createChartFiles()
  const about = parseChart(files)
  if (about.version !== version || about.appVersion !== version)
    throw new Error(
      `driver/helm/modekeep/Chart.yaml has version ${about.version}: write ${version}, as in package.json`,
    )
  const chart = gzipSync(createTarArchive(createTreeEntries(about.name, files), timeSeconds), { level: 6 })
  return [
    { path: `${about.name}-${version}.tgz`, bytes: chart },
    { path: `${about.name}-${version}-chart.tar`, bytes: createChartArchive(about, chart) },
  ]
}

interface ChartDescription {
  name: string
  version: string
  appVersion: string
  description: string
}

function parseChart(files: readonly TreeFile[]): ChartDescription {
  return parse(String(files.find(({ path }) => path === 'Chart.yaml')?.bytes))
}

/** The media types of Helm: https://helm.sh/docs/topics/registries/ */
function createChartArchive(about: ChartDescription, chart: Buffer): Buffer {
  const layout = new OciLayout()
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST_TYPE,
    config: layout.add('application/vnd.cncf.helm.config.v1+json', encodeJson(about)),
    layers: [layout.add('application/vnd.cncf.helm.chart.content.v1.tar+gzip', chart)],
    annotations: {
      'org.opencontainers.image.title': about.name,
      'org.opencontainers.image.version': about.version,
      'org.opencontainers.image.description': about.description,
    },
  }
  const annotations = { 'org.opencontainers.image.ref.name': about.version }
  return layout.createArchive({ ...layout.add(OCI_MANIFEST_TYPE, encodeJson(manifest)), annotations })
}

const OCI_MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
