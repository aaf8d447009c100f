import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { provideKubernetesProgram } from '../../scripts/fetch/kubernetes.ts'

/**
 * The path of a program around kubelet's own walk, built if the cache has none.
 * @throws {Error} with the reason, where it cannot be built
 */
export function kubeletWalk(say: (text: string) => void): string {
  const main = fs.readFileSync(resolve(import.meta.dirname, 'setownership.go'))
  return provideKubernetesProgram({ name: 'setownership', main }, say)
}
