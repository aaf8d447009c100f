import { realpathSync } from 'node:fs'
import { errorCode, type Handle, type Inodes } from '../host/host.ts'
import { Refusal, show } from '../protocol/refusal.ts'

/** A stand-in: by name, so not safe from those who exchange links meanwhile. */
export function openInside(inodes: Inodes, root: Handle, subPath: string): Handle {
  const top = inodes.pathOf(root)
  let real: string
  try {
    real = realpathSync(`${top}/${subPath}`)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new Refusal(`subPath ${show(subPath)} does not exist in its volume`)
    throw error
  }
  if (!real.startsWith(`${top}/`)) throw new Refusal(`subPath ${show(subPath)} leads out of its volume`)
  return inodes.openLinkFree(real)
}
