import { errorCode } from '../../host/host.ts'

const GONE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** The result, or undefined where the name vanished or became something else (a link: ELOOP) meanwhile. */
export function gone<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (GONE.has(errorCode(error) ?? '')) return undefined
    throw error
  }
}
