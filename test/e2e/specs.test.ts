import { describe, expect, it } from 'vitest'
import { QUICK, REASONS, reasonFor } from './reasons.ts'
import { specsOf } from './report.ts'

const XML = `<testsuite><testcase name="External Storage [Testpattern: Dynamic PV (default fs)] volumes should store data" classname="K" time="3.5"></testcase>
<testcase name="[It] a &#34;b&#34; &amp; c" classname="K" time="0"><skipped></skipped></testcase>
<testcase name="d" classname="K" time="61"><failure type="Failure">x.go:1&#xA;no &lt;file&gt;</failure></testcase></testsuite>`

describe('the results of the Kubernetes e2e suite', () => {
  it("list the passed, skipped and failed specs of the suite's report file", () => {
    expect(specsOf(XML)).toEqual([
      {
        name: 'External Storage [Testpattern: Dynamic PV (default fs)] volumes should store data',
        verdict: 'passed',
        seconds: 3.5,
      },
      { name: 'a "b" & c', verdict: 'skipped', seconds: 0 },
      { name: 'd', verdict: 'failed', seconds: 61, failure: 'x.go:1\nno <file>' },
    ])
  })

  it("count neither Ginkgo's own steps as specs nor the suite's own skips as failures", () => {
    // As the suite of 1.36 writes them.
    const steps = [
      '[SynchronizedBeforeSuite]',
      '[SynchronizedAfterSuite]',
      '[ReportAfterSuite] Kubernetes e2e JUnit report',
    ]
    const cases = steps.map((name) => `<testcase name="${name}" classname="K" status="passed" time="0.1"></testcase>`)
    const skip = `<testcase name="[It] External Storage a" classname="K" status="skipped" time="2"><skipped message="skipped - Driver &#34;modekeep&#34; does not support it"></skipped></testcase>`
    expect(specsOf(`<testsuite>${cases.join('')}${skip}</testsuite>`)).toEqual([
      {
        name: 'External Storage a',
        verdict: 'skipped',
        seconds: 2,
        skipped: 'skipped - Driver "modekeep" does not support it',
      },
    ])
    const failed = '<testcase name="[SynchronizedBeforeSuite]" time="1"><failure type="x">no node</failure></testcase>'
    expect(() => specsOf(failed)).toThrow('[SynchronizedBeforeSuite] failed: no node')
  })

  it('have a reason for each feature that modekeep lacks, and none for a promised one', () => {
    expect(reasonFor('[Testpattern: Dynamic PV (block volmode)] volumes should store data')).toMatch(/Block/)
    expect(reasonFor('should provision storage with any volume data source')).toMatch(/controller/)
    expect(reasonFor('[Testpattern: Dynamic PV (default fs)] volumes should store data')).toBeUndefined()
    for (const text of QUICK) expect(reasonFor(`[Testpattern: Dynamic PV (default fs)] ${text}`), text).toBeUndefined()
    for (const { pattern } of REASONS) expect(() => new RegExp(pattern)).not.toThrow()
  })
})
