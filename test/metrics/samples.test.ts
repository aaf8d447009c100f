import { describe, expect, it } from 'vitest'
import {
  addSample,
  createZeroSamples,
  formatMetricSamples,
  formatSeries,
  METRIC_FAMILIES,
  type MetricFamily,
  type MetricSamples,
  observeDuration,
} from '../../src/metrics/samples.ts'
import { parseExposition } from './exposition.ts'

const FAMILY = '# HELP a_total Text.\n# TYPE a_total counter\n'

describe('the strict reader of the tests', () => {
  it('the strict metrics reader parses labels with every escape, and numbers of every form', () => {
    const { samples } = parseExposition(`${FAMILY}a_total{b="\\\\ \\" \\n",c=""} 1.5e+21\na_total 0\n`)
    expect(samples).toEqual([
      { family: 'a_total', name: 'a_total', labels: { b: '\\ " \n', c: '' }, value: 1.5e21 },
      { family: 'a_total', name: 'a_total', labels: {}, value: 0 },
    ])
  })

  it.each([
    ['no newline at the end', `${FAMILY}a_total 1`],
    ['an empty line', `${FAMILY}\na_total 1\n`],
    ['an unescaped quote', `${FAMILY}a_total{b="""} 1\n`],
    ['an unknown escape', `${FAMILY}a_total{b="\\t"} 1\n`],
    ['a label without a value', `${FAMILY}a_total{b} 1\n`],
    ['no value', `${FAMILY}a_total \n`],
    ['a value that is no number', `${FAMILY}a_total NULL\n`],
    ['a sample before its TYPE', 'a_total 1\n'],
    ['a TYPE without HELP', '# TYPE a_total counter\na_total 1\n'],
    ['a sample of another family', `${FAMILY}b_total 1\n`],
    ['a duplicate series', `${FAMILY}a_total 1\na_total 2\n`],
    ['a family in two pieces', `${FAMILY}a_total 1\n${FAMILY}a_total{b="c"} 1\n`],
    ['a histogram without +Inf', '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_sum 1\nh_count 1\n'],
    [
      'a bucket that is smaller than the one before',
      '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n',
    ],
  ])('the strict metrics reader refuses %s', (_what, text) => {
    expect(() => parseExposition(text)).toThrow()
  })
})

describe('names of metrics', () => {
  it.each(Object.entries<MetricFamily>(METRIC_FAMILIES))(
    'the metric name %s follows the conventions of Prometheus',
    (name, { type, help, labels }) => {
      expect(name).toMatch(/^modekeep_[a-z_]+[a-z]$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
      expect(name.endsWith('_seconds')).toBe(type === 'histogram')
      expect(help).toMatch(/^[^\n\\]+\.$|^[^\n\\]+; else 0\.$/)
      for (const label of Object.keys(labels)) expect(label).toMatch(/^(?!le$|quantile$|__)[a-z_]+$/)
    },
  )
})

describe('the text format', () => {
  it('the metrics text has every series with known labels from the start, and each family in one piece', () => {
    const { families, samples } = parseExposition(
      formatMetricSamples(new Map([...createZeroSamples('gauges'), ...createZeroSamples('counters')])),
    )
    const unknown = ['modekeep_info', 'modekeep_mounts']
    expect([...families.keys()]).toEqual(Object.keys(METRIC_FAMILIES).filter((name) => !unknown.includes(name)))
    expect(new Set(samples.map(({ value }) => value))).toEqual(new Set([0]))
    expect(samples.filter(({ name }) => name === 'modekeep_calls_total')).toHaveLength(21)
  })

  it('the metrics text keeps every value and any character in labels', () => {
    const samples: MetricSamples = new Map()
    const hostile = 'a"b\\c\nd} 1\n# TYPE x counter'
    addSample(samples, 'modekeep_mounts', { type: `fuse.${hostile}`, ownership: 'none', state: 'healthy' })
    const read = parseExposition(formatMetricSamples(samples)).samples
    expect(read.map(({ labels, value }) => [labels.type, value])).toEqual([[`fuse.${hostile}`, 1]])
  })

  it('a histogram observation counts in its bucket and in all larger buckets', () => {
    const samples = createZeroSamples('counters')
    for (const seconds of [0, 0.01, 0.0101, 5000])
      observeDuration(samples, 'modekeep_call_duration_seconds', { verb: 'heal' }, seconds)
    const value = (part: string, labels = {}) =>
      samples.get(formatSeries(`modekeep_call_duration_seconds_${part}`, { verb: 'heal', ...labels }))
    expect([value('bucket', { le: '0.01' }), value('bucket', { le: '0.03' }), value('bucket', { le: '1000' })]).toEqual(
      [2, 3, 3],
    )
    expect([value('bucket', { le: '+Inf' }), value('count'), value('sum')]).toEqual([4, 4, 5000.0201])
    expect(() => parseExposition(formatMetricSamples(samples))).not.toThrow()
  })

  it('the metrics text omits series of an unknown family', () => {
    expect(formatMetricSamples(new Map([['modekeep_gone_total', 5]]))).toBe('')
  })
})
