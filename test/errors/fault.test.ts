import { describe, expect, it } from 'vitest'
import {
  attributeFaultToAnnotation,
  CSI_TERMS,
  createFault,
  createOptionFault,
  OPTION_TERM_PLACEHOLDER,
  prefixFault,
  renderFault,
  renderFaultCodes,
  SECRET_REF_PLACEHOLDER,
} from '../../src/errors/fault.ts'
import { quoteValue } from '../../src/errors/refusal.ts'

describe('a fault as a sentence', () => {
  it.each([
    [undefined, undefined, 'it is wrong'],
    ['mend it', undefined, 'it is wrong: mend it'],
    [undefined, 'the kernel says so', 'it is wrong: the kernel says so'],
    ['mend it', 'the kernel says so', 'it is wrong: the kernel says so; mend it'],
  ])('with remedy %j and cause %j is %j', (remedy, cause, sentence) => {
    expect(renderFault(createFault('internal', 'it is wrong', remedy, cause))).toBe(sentence)
  })

  it("has each protocol's word for an option, also if the remedy names another option", () => {
    const fault = createOptionFault(
      'submounts-hidden',
      'source',
      'has mounts inside',
      `set ${OPTION_TERM_PLACEHOLDER} "submounts" to "hide"`,
    )
    expect(renderFault(fault)).toBe('option "source" has mounts inside: set option "submounts" to "hide"')
    expect(renderFault(fault, CSI_TERMS)).toBe(
      'volumeAttributes "source" has mounts inside: set volumeAttributes "submounts" to "hide"',
    )
  })

  it("keeps a user's quoted value unchanged, even if the value contains a placeholder character", () => {
    for (const value of ['{option}', '{secretRef}', OPTION_TERM_PLACEHOLDER]) {
      const fault = createOptionFault('option-format', 'ownership', `is ${quoteValue(value)}`)
      expect(renderFault(fault, CSI_TERMS)).toBe(`volumeAttributes "ownership" is ${quoteValue(value)}`)
    }
  })

  it('names its option after an added prefix, and begins with the annotation only once', () => {
    const fault = prefixFault(createOptionFault('sub-path', 'subPath', 'is "a"', 'rename it'), 'volume "v" ')
    expect(renderFault(fault, CSI_TERMS)).toBe('volume "v" volumeAttributes "subPath" is "a": rename it')
    const annotation = 'annotation modekeep/group is "2"'
    const attributed = attributeFaultToAnnotation(fault, annotation)
    expect(renderFault(attributed)).toBe(`${annotation}, but volume "v" option "subPath" is "a": rename it`)
    expect(attributeFaultToAnnotation(attributed, annotation)).toBe(attributed)
  })

  it("keeps FlexVolume's word for a key that only kubelet writes", () => {
    const fault = createOptionFault('pod-uid', 'kubernetes.io/pod.uid', 'is "a"')
    expect(renderFault(fault, CSI_TERMS)).toBe('option "kubernetes.io/pod.uid" is "a"')
  })

  it('has the name of the field for the secret of each protocol', () => {
    const fault = createFault('secret', 'a share needs a user', `name it in ${SECRET_REF_PLACEHOLDER}`)
    expect(renderFault(fault)).toBe('a share needs a user: name it in secretRef')
    expect(renderFault(fault, CSI_TERMS)).toBe('a share needs a user: name it in nodePublishSecretRef')
  })

  it('has its code listed once, even if several faults have the same code', () => {
    const faults = [createFault('secret', 'a'), createFault('internal', 'b'), createFault('secret', 'c')]
    expect(renderFaultCodes(faults)).toBe(' [secret, internal]')
  })
})
