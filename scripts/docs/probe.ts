import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import type { VolumeKindRequest } from '../../src/config/request.ts'
import { parseSource } from '../../src/config/source.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { findVolumeKind } from '../../src/volume/index.ts'
import type { VolumeKind } from '../../src/volume/kind/kind.ts'
import { findRequiredOptionNaming } from '../../src/volume/kind/options.ts'

export function getVolumeKind(fsType: string): VolumeKind {
  const kind = findVolumeKind(fsType)
  if (kind === undefined) throw new Error(`no kind ${fsType}`)
  return kind
}

/** What a kind answers to a request: the page says what the code does, and never what somebody remembered. */
export function findRequestFaults(fsType: string, text: string, asked: Partial<VolumeKindRequest>): string[] {
  const source = parseSource(text, getVolumeKind(fsType).isDisk)
  const plain = { source, fsType, mountOptions: [], readOnly: false, ownership: 'none' } as const
  return getVolumeKind(fsType)
    .faults({ ...plain, ...asked }, DEFAULT_CONFIG)
    .map((fault) => renderFault(fault))
}

export interface OptionAnswer {
  /** Without a rule that names it. */
  isAllowed: boolean
  isForReadOnly: boolean
}

/**
 * How a kind takes a mount option.
 * @throws {Error} where it refuses it in any case
 */
export function probeMountOption(fsType: string, source: string, option: string): OptionAnswer {
  const isFine = (readOnly: boolean) =>
    findRequestFaults(fsType, source, { mountOptions: [option], readOnly }).length === 0
  if (!isFine(true)) throw new Error(`${fsType} refuses its own example: ${option}`)
  const isAllowed = findRequiredOptionNaming(getVolumeKind(fsType).optionRules(), option) === 'none'
  return { isAllowed, isForReadOnly: !isFine(false) }
}
