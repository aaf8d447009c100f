import { resolve } from 'node:path'
import type { Given } from './form.ts'

// Where kubelet keeps its pods unless told otherwise (--root-dir).
const KUBELET_DIRECTORY = '/var/lib/kubelet'

export function kubeletDirectory(given: Given): string {
  return resolve(given.get('kubelet-dir') ?? KUBELET_DIRECTORY)
}
