import { join, posix } from 'node:path'
import fs from 'fs-extra'
import { parse } from 'yaml'
import type { TreeFile } from '../archive/tree.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The kustomize base, overlays and components. */
export const MANIFESTS_DIRECTORY = join(ROOT, 'driver/kubernetes')

export const CHART_DIRECTORY = join(ROOT, 'driver/helm/modekeep')

/** The directory of the chart from which its templates read the manifests. */
const MANIFESTS_IN_CHART = 'files/kubernetes'

/** The doors that are components, next to those below `components`. */
const DOOR_COMPONENTS = ['csi', 'device-plugin', 'nri']

/** Returns the files of the complete chart: those of driver/helm/modekeep, and the manifests that its templates read. */
export function createChartFiles(): TreeFile[] {
  const own = fs
    .readdirSync(CHART_DIRECTORY, { recursive: true, encoding: 'utf8' })
    .filter((path) => fs.statSync(join(CHART_DIRECTORY, path)).isFile())
    .map((path) => ({ path, bytes: fs.readFileSync(join(CHART_DIRECTORY, path)) }))
  const manifests = [...new Set(listKustomizations().flatMap(listKustomizationFiles))].sort()
  return [
    ...own,
    { path: 'LICENSE', bytes: fs.readFileSync(join(ROOT, 'LICENSE')) },
    ...manifests.map((path) => ({
      path: `${MANIFESTS_IN_CHART}/${path}`,
      bytes: fs.readFileSync(join(MANIFESTS_DIRECTORY, path)),
    })),
  ]
}

/** Writes the complete chart into a new or empty directory. */
export function writeChart(directory: string): void {
  for (const { path, bytes } of createChartFiles()) fs.outputFileSync(join(directory, path), bytes)
}

/** Returns the directories below driver/kubernetes that the values of the chart select. */
function listKustomizations(): string[] {
  const list = (folder: string) => fs.readdirSync(join(MANIFESTS_DIRECTORY, folder)).map((name) => `${folder}/${name}`)
  return [...list('overlays'), ...list('components'), ...DOOR_COMPONENTS]
}

const KUSTOMIZATION_KEYS = ['apiVersion', 'kind', 'namespace', 'resources', 'components', 'patches']

/** @throws {Error} if the kustomization has a field that the chart's templates do not read */
function listKustomizationFiles(directory: string): string[] {
  const file = `${directory}/kustomization.yaml`
  const kustomization = parse(fs.readFileSync(join(MANIFESTS_DIRECTORY, file), 'utf8'))
  const unknown = Object.keys(kustomization).filter((key) => !KUSTOMIZATION_KEYS.includes(key))
  if (unknown.length > 0)
    throw new Error(`${file} has ${unknown.join(', ')}: templates/_kustomize.tpl of the chart does not read it`)
  const { resources = [], components = [] } = kustomization as Record<string, string[]>
  return [
    file,
    ...[...resources, ...components].flatMap((name) => {
      const path = posix.join(directory, name)
      return path.endsWith('.yaml') ? [path] : listKustomizationFiles(path)
    }),
  ]
}
