import { DEFAULT_CONFIG, type NodeConfig } from '../../src/request/defaults.ts'
import type { KindRequest } from '../../src/request/request.ts'
import { parseSource } from '../../src/request/source.ts'
import { kindOf } from '../../src/volume/index.ts'
import type { VolumeKind } from '../../src/volume/kind/kind.ts'

/** A node that allows every source, and of mount options what a node allows without being told. */
const OPEN: NodeConfig = {
  ...DEFAULT_CONFIG,
  allowedSources: ['/', 'nfs.example.com:/', '//files.example.com/team', 'bob@files.example.com:/'],
}

export function kindNamed(fsType: string): VolumeKind {
  const kind = kindOf(fsType)
  if (kind === undefined) throw new Error(`no kind ${fsType}`)
  return kind
}

/** What a kind answers to a request: the page says what the code does, and never what somebody remembered. */
export function faultsOf(fsType: string, text: string, asked: Partial<KindRequest>, config = OPEN): string[] {
  const source = parseSource(text, kindNamed(fsType).isDisk)
  const plain = { source, fsType, mountOptions: [], readOnly: false, ownership: 'none' } as const
  return kindNamed(fsType).faults({ ...plain, ...asked }, config)
}

export interface OptionAnswer {
  /** Without the node's allowedMountOptions. */
  isAllowed: boolean
  isForReadOnly: boolean
}

/**
 * How a kind takes a mount option.
 * @throws {Error} where it refuses it in any case
 */
export function answerTo(fsType: string, source: string, option: string): OptionAnswer {
  const name = option.split('=', 1)[0] ?? ''
  const told = { ...OPEN, allowedMountOptions: { [fsType]: [name, option] } }
  const isFine = (config: NodeConfig, readOnly: boolean) =>
    faultsOf(fsType, source, { mountOptions: [option], readOnly }, config).length === 0
  if (!isFine(told, true)) throw new Error(`${fsType} refuses its own example: ${option}`)
  return { isAllowed: isFine(OPEN, true), isForReadOnly: !isFine(told, false) }
}
