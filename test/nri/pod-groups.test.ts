import { expect, it } from 'vitest'
import { groupsIn } from '../../src/nri/pod-groups.ts'

const text = (security_context: unknown) => JSON.stringify({ config: { linux: { security_context } } })

it('of a pod are the supplemental ones, and runAsGroup where a container has no other, as kubelet wrote them', () => {
  expect(groupsIn(text({ run_as_group: { value: 1000 }, supplemental_groups: [2000, 3000] }))).toEqual({
    certain: [2000, 3000],
    perhaps: [1000],
  })
  expect(groupsIn(text({ supplemental_groups: [2000] }))).toEqual({ certain: [2000], perhaps: [] })
  // Go leaves a zero out.
  expect(groupsIn(text({ run_as_group: {} }))).toEqual({ certain: [], perhaps: [0] })
  expect(groupsIn(text({ namespace_options: { pid: 1 } }))).toEqual({ certain: [], perhaps: [] })
})

it.each(['', 'null', '[]', '{}', '{"config":{}}', text(null), text('2000'), text({ supplemental_groups: ['2000'] })])(
  'of %j are not known',
  (told) => expect(groupsIn(told)).toBeUndefined(),
)

it.each([text({ supplemental_groups: '2000' }), text({ run_as_group: 'x' }), text({ run_as_group: { value: 1.5 } })])(
  'of %j are not known, as it is another form',
  (told) => expect(groupsIn(told)).toBeUndefined(),
)
