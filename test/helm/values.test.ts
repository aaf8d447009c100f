import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import about from '../../package.json' with { type: 'json' }
import { CHART_DIRECTORY } from '../../scripts/chart/files.ts'
import { readChartValues } from '../../scripts/chart/values.ts'
import { createValuesSchema, findValueSchema, formatValuesSchema } from '../../scripts/chart/values-schema.ts'
import { createChartPage } from '../../scripts/docs/chart-page.ts'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { one } from '../kubernetes/render.ts'
import { createChart, renderChart, runHelm, runTemplate } from './template.ts'

const read = (name: string) => fs.readFileSync(join(CHART_DIRECTORY, name), 'utf8')

let chart: string | undefined
const provideChart = () => {
  chart ??= createChart()
  return chart
}
const daemonSet = skipIfUnavailable((values: object) => one(renderChart(provideChart(), values), 'DaemonSet'))
const refusal = skipIfUnavailable((values: object, ...args: string[]) => {
  const { status, stderr } = runTemplate(provideChart(), values, ...args)
  return status === 0 ? undefined : stderr
})

describe('the generated files of the chart', () => {
  it('README.md equals the output of "npm run docs"', () => expect(read('README.md')).toBe(createChartPage()))

  it('values.schema.json equals the output of "npm run docs"', () =>
    expect(read('values.schema.json')).toBe(formatValuesSchema()))

  it('values.schema.json describes every value in values.yaml', () => {
    const schema = createValuesSchema()
    expect(readChartValues().filter(({ path }) => findValueSchema(schema, path) === undefined)).toEqual([])
  })

  it('Chart.yaml has the version of the executable', () => {
    expect(parse(read('Chart.yaml'))).toMatchObject({ version: about.version, appVersion: about.version })
  })
})

describe('helm', () => {
  it(
    'lint finds no fault in the chart',
    skipIfUnavailable(() => {
      expect(runHelm('lint', '--strict', provideChart())).toMatchObject({
        status: 0,
        stdout: expect.stringContaining('1 chart(s) linted, 0 chart(s) failed'),
      })
    }),
  )

  it.each([
    ['an unknown key', { csi: {} }, "'csi' not allowed"],
    ['an unknown distribution', { distribution: 'eks' }, 'distribution'],
    ['an unknown key of the configuration', { config: { allowed: [] } }, "'allowed' not allowed"],
    ['an unknown key of a rule', { config: { allow: [{ source: [] }] } }, "'source' not allowed"],
    ['a number out of range', { config: { helperTimeoutSeconds: 0 } }, 'helperTimeoutSeconds'],
    ['a relative path', { config: { stateDir: 'lib/../modekeep' } }, 'stateDir'],
    ['a tag that is a number', { image: { tag: 1.2 } }, 'tag'],
    ['metrics without heal', { doors: { heal: { enabled: false } }, metrics: { enabled: true } }, 'heal serves'],
  ])('refuses %s', (_, values, message) => expect(refusal(values)).toContain(message))

  it('refuses Kubernetes 1.19, and the policy for inline volumes before 1.30', () => {
    expect(refusal({}, '--kube-version', '1.19.0')).toContain('1.20.0')
    expect(refusal({ policies: { inlineByLabel: true } }, '--kube-version', '1.29.3-gke.1')).toContain(
      'needs Kubernetes 1.30',
    )
  })
})

describe('a value', () => {
  it('reaches the pods unchanged, also with characters of YAML and JSON', () => {
    const odd = `a: "b"\n- {{ .Values }} # c`
    const sources = ['/srv/{namespace}/*', '/srv/<a>&"b"']
    const { spec, metadata } = daemonSet({
      podAnnotations: { odd },
      podLabels: { on: 'yes', 'app.kubernetes.io/name': 'other' },
      config: { allow: [{ sources }], stateQuota: 2 ** 30, stateDir: '/srv/state', logFile: '/srv/log/m.log' },
      image: { repository: 'registry.example.org/modekeep', digest: `sha256:${'a'.repeat(64)}` },
      pluginDirectory: '/opt/plugins',
      doors: { heal: { args: ['--kubelet-subpaths'] }, devicePlugin: { enabled: true, devices: 7 } },
      resources: { heal: { limits: { memory: '1Gi' } } },
      tolerations: [],
      nodeSelector: { disk: 'ssd' },
      maxUnavailable: '10%',
    }).spec.template
    expect(metadata.annotations.odd).toBe(odd)
    expect(metadata.labels).toEqual({ on: 'yes', 'app.kubernetes.io/name': 'modekeep' })
    expect(JSON.parse(metadata.annotations['modekeep/config'])).toMatchObject({
      allow: [{ sources }],
      stateQuota: 2 ** 30,
    })
    expect(metadata.annotations['modekeep/plugin-directory']).toBe('/opt/plugins')
    const [install] = spec.initContainers
    const [heal, plugin] = spec.containers
    expect(install.image).toBe(`registry.example.org/modekeep@sha256:${'a'.repeat(64)}`)
    const paths = Object.fromEntries(
      install.volumeMounts.map((mount: Record<string, string>) => [mount.name, mount.mountPath]),
    )
    expect(paths).toMatchObject({ plugins: '/opt/plugins', state: '/srv/state', logs: '/srv/log' })
    expect(heal.command.at(-1)).toBe('--kubelet-subpaths')
    expect(heal.resources).toMatchObject({ limits: { memory: '1Gi' }, requests: { memory: '112Mi' } })
    expect(plugin.args).toEqual(['--devices', '7'])
    expect(spec.tolerations).toEqual([])
    expect(spec.nodeSelector).toEqual({ disk: 'ssd', 'kubernetes.io/os': 'linux' })
  })

  it('that purges adds an argument to the container that uninstalls', () => {
    const { initContainers } = daemonSet({ uninstall: { enabled: true, purge: true } }).spec.template.spec
    expect(initContainers[0].command.at(-1)).toBe('--purge')
  })
})

describe('the policy anyVolume', () => {
  it('is refused where neither version of its API is served', () => {
    const values = { doors: { nri: { enabled: true } }, policies: { anyVolume: true } }
    const message = refusal(values, '--kube-version', '1.33.0') ?? ''
    expect(message).toContain('admissionregistration.k8s.io/v1 (Kubernetes 1.36 or newer) or v1beta1')
    expect(message).toContain('the cluster has Kubernetes v1.33.0')
  })

  it('is refused without the plugin', () => {
    expect(refusal({ policies: { anyVolume: true } })).toContain('policies.anyVolume needs doors.nri.enabled')
  })
})

it('the chart in driver/helm, without manifests, is refused with the command that completes it', () => {
  const run = skipIfUnavailable(() => runTemplate(resolve(CHART_DIRECTORY), {}))
  expect(run().stderr).toContain('npm run chart')
})
