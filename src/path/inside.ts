import type { Handle, Inodes } from '../host/host.ts'
import { Refusal, show } from '../protocol/refusal.ts'

export function openInside(_inodes: Inodes, _root: Handle, subPath: string): Handle {
  throw new Refusal(`option "subPath" is ${show(subPath)}: not in this version`)
}

export function subPathFaults(_subPath: string): string[] {
  return []
}
