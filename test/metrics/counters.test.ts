import { beforeEach, describe, expect, it } from 'vitest'
import { appendLogLine } from '../../src/log/log-file.ts'
import { updateCounters } from '../../src/metrics/expose.ts'
import type { MetricSamples } from '../../src/metrics/samples.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'

let stage: Stage
beforeEach(() => {
  stage = memoryStage()
  stage.config = { ...stage.config, logFile: `${stage.top}/log` }
})

const MOUNT = JSON.stringify({ verb: 'mount', outcome: 'Success', durationMs: 20 })
const append = (line: string, largest?: number) => appendLogLine(stage.fs, stage.config.logFile, line, largest)

/** What was counted so far, of one series. */
function counted(series = 'modekeep_calls_total{verb="mount",outcome="success"}'): number | undefined {
  let counters: MetricSamples = new Map()
  updateCounters(stage.fs, { ...stage.session(), config: stage.config }, (found) => {
    counters = found
  })
  return counters.get(series)
}

describe('metrics counters', () => {
  it('counters begin with lines logged after the first count, and count each line once', () => {
    append(MOUNT)
    expect(counted()).toBe(0)
    append(MOUNT)
    append(MOUNT)
    expect(counted()).toBe(2)
    expect(counted()).toBe(2)
  })

  it('warnings that a call counted instead of logging again are added to the counters', () => {
    append('{"verb":"heal"}')
    const warnings = 'modekeep_warnings_total{verb="mount"}'
    counted()
    for (const line of [
      { level: 'warn', message: 'one' },
      { level: 'warn', message: 'one', repeated: 9 },
      { level: 'error', outcome: 'Failure', durationMs: 1, repeatedWarnings: 2 },
      { level: 'error', outcome: 'Failure', durationMs: 1 },
    ]) {
      append(JSON.stringify({ verb: 'mount', ...line }))
    }
    expect(counted(warnings)).toBe(12)
    expect(counted('modekeep_calls_total{verb="mount",outcome="failed"}')).toBe(2)
  })

  it('counters continue through log rotations, and count a call that ends late in a rotated file', () => {
    append('{"verb":"heal"}')
    counted()
    const late = stage.fs.openSync(stage.config.logFile, 'a')
    append(MOUNT, 1)
    append('{"verb":"gc"}')
    expect(counted()).toBe(1)
    stage.fs.writeSync(late, `${MOUNT}\n`)
    stage.fs.closeSync(late)
    expect(counted()).toBe(2)
    expect(counted('modekeep_log_gaps_total')).toBe(0)
  })

  it('a gap in the log is counted as lost lines', () => {
    append(MOUNT)
    counted()
    stage.fs.rmSync(stage.config.logFile)
    append('{"verb":"status"}')
    expect(counted('modekeep_log_gaps_total')).toBe(1)
    append(MOUNT)
    expect(counted()).toBe(1)
    expect(counted('modekeep_log_gaps_total')).toBe(1)
  })

  it('states and actions of heal are counted, and unknown ones are ignored', () => {
    const found = [
      { state: 'stale', action: 'replaced' },
      { state: 'stale', action: 'replaced' },
      { state: 'unknown', action: 'none' },
      { state: 'of another version', action: 'none' },
      { outcome: 'replaced' },
    ]
    const subPaths = [{ action: 'replaced' }, { action: 'of another version' }]
    counted()
    append(JSON.stringify({ verb: 'heal', outcome: 'Success', durationMs: 1, found, subPaths }))
    expect(counted('modekeep_heals_total{state="stale",action="replaced"}')).toBe(2)
    expect(counted('modekeep_heals_total{state="unknown",action="none"}')).toBe(1)
    expect(counted('modekeep_heals_total{state="orphaned",action="forgotten"}')).toBe(0)
    expect(counted('modekeep_sub_path_heals_total{action="replaced"}')).toBe(1)
    expect(counted('modekeep_heals_total{state="of another version",action="none"}')).toBeUndefined()
    expect(counted('modekeep_sub_path_heals_total{action="of another version"}')).toBeUndefined()
  })
})
