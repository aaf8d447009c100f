import { describe, expect, it } from 'vitest'
import { CSI_WORDS, createFault, createOptionFault, renderCodes, renderFault } from '../../src/errors/fault.ts'

describe('a fault as a sentence', () => {
  it.each([
    [undefined, undefined, 'it is wrong'],
    ['mend it', undefined, 'it is wrong: mend it'],
    [undefined, 'the kernel says so', 'it is wrong: the kernel says so'],
    ['mend it', 'the kernel says so', 'it is wrong: the kernel says so; mend it'],
  ])('with remedy %j and cause %j is %j', (remedy, cause, sentence) => {
    expect(renderFault(createFault('internal', 'it is wrong', remedy, cause))).toBe(sentence)
  })

  it("has each protocol's word for an option, also where the remedy names another option", () => {
    const fault = createOptionFault(
      'submounts-hidden',
      'source',
      'has mounts inside',
      'set {option} "submounts" to "hide"',
    )
    expect(renderFault(fault)).toBe('option "source" has mounts inside: set option "submounts" to "hide"')
    expect(renderFault(fault, CSI_WORDS)).toBe(
      'volumeAttributes "source" has mounts inside: set volumeAttributes "submounts" to "hide"',
    )
  })

  it("keeps FlexVolume's word for a key that only kubelet writes", () => {
    const fault = createOptionFault('pod-uid', 'kubernetes.io/pod.uid', 'is "a"')
    expect(renderFault(fault, CSI_WORDS)).toBe('option "kubernetes.io/pod.uid" is "a"')
  })

  it('has the name of the field for the secret of each protocol', () => {
    const fault = createFault('secret', 'a share needs a user', 'name it in {secretRef}')
    expect(renderFault(fault)).toBe('a share needs a user: name it in secretRef')
    expect(renderFault(fault, CSI_WORDS)).toBe('a share needs a user: name it in nodePublishSecretRef')
  })

  it('the codes of several faults are listed once each', () => {
    const faults = [createFault('secret', 'a'), createFault('internal', 'b'), createFault('secret', 'c')]
    expect(renderCodes(faults)).toBe(' [secret, internal]')
  })
})
