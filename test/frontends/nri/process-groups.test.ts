import { expect, it } from 'vitest'
import { parsePodProcessGids } from '../../../src/frontends/nri/cri.ts'

const text = (security_context: unknown) => JSON.stringify({ config: { linux: { security_context } } })

it("a pod's supplemental groups count as certain, and its runAsGroup counts as possible", () => {
  expect(parsePodProcessGids(text({ run_as_group: { value: 1000 }, supplemental_groups: [2000, 3000] }))).toEqual({
    certain: [2000, 3000],
    possible: [1000],
  })
  expect(parsePodProcessGids(text({ supplemental_groups: [2000] }))).toEqual({ certain: [2000], possible: [] })
  // Go leaves a zero out.
  expect(parsePodProcessGids(text({ run_as_group: {} }))).toEqual({ certain: [], possible: [0] })
  expect(parsePodProcessGids(text({ namespace_options: { pid: 1 } }))).toEqual({ certain: [], possible: [] })
})

it.each(['', 'null', '[]', '{}', '{"config":{}}', text(null), text('2000'), text({ supplemental_groups: ['2000'] })])(
  "the groups of a pod are unknown if the runtime's info is %j",
  (told) => expect(parsePodProcessGids(told)).toBeUndefined(),
)

it.each([text({ supplemental_groups: '2000' }), text({ run_as_group: 'x' }), text({ run_as_group: { value: 1.5 } })])(
  "the groups of a pod are unknown if the runtime's info has the unexpected form %j",
  (told) => expect(parsePodProcessGids(told)).toBeUndefined(),
)
