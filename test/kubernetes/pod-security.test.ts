import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { LEVELS, levelOf, podSpecs, saidLevel } from './pod-security.ts'
import { type Resource, render as renderByKubectl } from './render.ts'
import { kustomization } from './tree.ts'

const FOLDER = resolve(import.meta.dirname, '../../driver/kubernetes')
const render = skipIfUnavailable(renderByKubectl)
const EXAMPLES = [
  ...fs.readdirSync(join(FOLDER, 'examples')).map((name) => `examples/${name}`),
  'device-plugin/example-pod.yaml',
]
const COMPONENTS = [
  'components/heal-devices',
  'components/metrics',
  'components/uninstall',
  'components/without-heal',
  'csi',
  'device-plugin',
  'nri',
]

const text = (file: string) => fs.readFileSync(join(FOLDER, file), 'utf8')
/** The level that all pods need together. */
const levelNeeded = (resources: readonly Resource[]) => {
  const levels = podSpecs(resources).map(({ spec }) => LEVELS.indexOf(levelOf(spec)))
  expect(levels).not.toEqual([])
  return LEVELS[Math.max(...levels)]
}

describe('the Pod Security level', () => {
  it.each(EXAMPLES)('of the example %s is stated in that file', (file) => {
    const resources = parseAllDocuments(text(file)).map((document) => document.toJS())
    expect(saidLevel(text(file))).toBe(levelNeeded(resources))
  })

  it('of the DaemonSet is stated in its manifest', () => {
    expect(saidLevel(text('base/daemonset.yaml'))).toBe(levelNeeded(render(kustomization('overlays/default', {}))))
  })

  it.each(COMPONENTS)('of the component %s is stated in its manifest', (component) => {
    const resources = render(kustomization('overlays/default', { components: [component] }))
    expect(saidLevel(text(`${component}/kustomization.yaml`))).toBe(levelNeeded(resources))
  })
})
