import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { type Resource, render } from '../kubernetes/render.ts'
import { kustomization } from '../kubernetes/tree.ts'
import { createChart, renderChart } from './template.ts'

const OVERLAYS = fs.readdirSync(resolve(import.meta.dirname, '../../driver/kubernetes/overlays')).sort()
const CONFIG = 'modekeep/config'
/** Labels of the chart's objects that kustomize does not add. The labels of pods are compared as they are. */
const HELM_LABELS = [
  'app.kubernetes.io/instance',
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/version',
  'helm.sh/chart',
]
const BEFORE_1_30 = ['--kube-version', '1.20.2']

const heal = (values: object) => ({ doors: { heal: values } })
const enabled = { enabled: true }
const ALL_DOORS = {
  doors: { heal: { devices: true }, csi: enabled, nri: enabled, devicePlugin: enabled },
  metrics: enabled,
  policies: { inlineByLabel: true },
}
const ALL_COMPONENTS = [
  'components/heal-devices',
  'device-plugin',
  'csi',
  'nri',
  'components/metrics',
  'components/inline-by-label',
]

const ANY_VOLUME = { doors: { nri: enabled }, policies: { anyVolume: true } }
const serving = (version: string, kubernetes: string) => [
  ...['--kube-version', kubernetes],
  ...['--api-versions', `admissionregistration.k8s.io/${version}/MutatingAdmissionPolicy`],
]

const CASES: [name: string, values: object, components: string[], args?: string[]][] = [
  ['no value', {}, []],
  ['the FlexVolume door on Kubernetes 1.20', {}, ['components/before-1.30'], BEFORE_1_30],
  ['heal with devices', heal({ devices: true }), ['components/heal-devices']],
  ['no heal', heal({ enabled: false }), ['components/without-heal']],
  ['the door csi', { doors: { csi: enabled } }, ['csi']],
  ['the door nri', { doors: { nri: enabled } }, ['nri']],
  ['the door devicePlugin', { doors: { devicePlugin: enabled } }, ['device-plugin']],
  ['metrics', { metrics: enabled }, ['components/metrics']],
  ['the policy inlineByLabel', { policies: { inlineByLabel: true } }, ['components/inline-by-label']],
  ['the policy anyVolume, version v1', ANY_VOLUME, ['nri', 'components/any-volume'], serving('v1', '1.36.0')],
  [
    'the policy anyVolume, version v1beta1',
    ANY_VOLUME,
    ['nri', 'components/any-volume-v1beta1'],
    serving('v1beta1', '1.34.0'),
  ],
  ['an uninstall', { uninstall: enabled }, ['components/uninstall']],
  ['an uninstall of all doors', { ...ALL_DOORS, uninstall: enabled }, [...ALL_COMPONENTS, 'components/uninstall']],
]

let chart: string | undefined
const renderBoth = skipIfUnavailable(
  (values: object, overlay: string, components: readonly string[], args: readonly string[] = []) => {
    chart ??= createChart()
    return [
      comparable(renderChart(chart, { distribution: overlay, ...values }, ...args)),
      comparable(render(kustomization(`overlays/${overlay}`, { components }))),
    ]
  },
)

/** The objects by kind and name, with the node's configuration as a value. */
function comparable(resources: readonly Resource[]): Record<string, Resource> {
  return Object.fromEntries(
    resources.map((resource) => {
      const labels = { 'app.kubernetes.io/name': 'modekeep', ...resource.metadata.labels }
      for (const label of HELM_LABELS) delete labels[label]
      const copy: Resource = structuredClone({ ...resource, metadata: { ...resource.metadata, labels } })
      const annotations = copy.spec?.template?.metadata.annotations
      if (annotations !== undefined) annotations[CONFIG] = JSON.parse(annotations[CONFIG])
      return [`${resource.kind} ${resource.metadata.name}`, copy]
    }),
  )
}

describe('the objects of the chart', () => {
  it.each(CASES)('equal those of kustomize with %s', (_, values, components, args) => {
    const [fromChart, fromKustomize] = renderBoth(values, 'default', components, args)
    expect(fromChart).toEqual(fromKustomize)
  })

  it.each(OVERLAYS)('equal those of kustomize for the distribution %s, without and with all doors', (overlay) => {
    const [fromChart, fromKustomize] = renderBoth({}, overlay, [])
    expect(fromChart).toEqual(fromKustomize)
    const [allFromChart, allFromKustomize] = renderBoth(ALL_DOORS, overlay, ALL_COMPONENTS)
    expect(allFromChart).toEqual(allFromKustomize)
    expect(Object.keys(allFromChart ?? {}).length).toBeGreaterThan(Object.keys(fromChart ?? {}).length)
  })

  it('are selected by values for every component in the directory', () => {
    const folder = resolve(import.meta.dirname, '../../driver/kubernetes/components')
    const tested = CASES.flatMap(([, , components]) => components)
    expect(fs.readdirSync(folder).filter((name) => !tested.includes(join('components', name)))).toEqual([])
  })
})
