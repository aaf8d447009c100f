import { describe, expect, it } from 'vitest'
import { faultsIn } from './validate.ts'

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', labels: { a: 'b' } },
  spec: { containers: [{ name: 'main', resources: { limits: { memory: '1Mi', 'modekeep/fuse': 1 } } }] },
}
const withContainer = (more: object) => ({ ...POD, spec: { containers: [{ name: 'main', ...more }] } })
const faults = (resource: unknown, newer = true) => faultsIn(resource, { newer })

describe('the check against the schemas of Kubernetes', () => {
  it('accepts what the API server accepts', () => expect(faults(POD)).toEqual([]))

  it.each([
    [
      'an unknown field',
      withContainer({ imagePulPolicy: 'Never' }),
      'Pod.spec.containers[0].imagePulPolicy is unknown',
    ],
    ['a missing field', { ...POD, spec: {} }, 'Pod.spec.containers is missing'],
    ['a number for a string', withContainer({ image: 7 }), 'Pod.spec.containers[0].image is 7: not string'],
    ['an object for a list', { ...POD, spec: { containers: {} } }, 'Pod.spec.containers is {}: not array'],
    ['a string for a number', { ...POD, spec: { ...POD.spec, priority: '1' } }, 'Pod.spec.priority is "1": not int32'],
    [
      'a label that is no string',
      { ...POD, metadata: { labels: { a: true } } },
      'Pod.metadata.labels.a is true: not string',
    ],
    ['a kind of another group', { ...POD, apiVersion: 'apps/v1' }, 'no schema for apps/v1 Pod'],
    ['nothing', null, 'no schema for  '],
  ])('reports a resource with %s', (_, resource, fault) => expect(faults(resource)).toEqual([fault]))

  it('reports fields that are newer than Kubernetes 1.20', () => {
    const pod = withContainer({ securityContext: { appArmorProfile: { type: 'Unconfined' } } })
    expect(faults(pod)).toEqual([])
    expect(faults(pod, false)).toEqual(['Pod.spec.containers[0].securityContext.appArmorProfile is unknown'])
  })
})
