import { KUBERNETES_VERSION, kubernetesProgram } from '../../../scripts/fetch/kubernetes.ts'

// Without it the kubelet takes itself for version 0.0.0.
const VERSION = `k8s.io/component-base/version.gitVersion=v${KUBERNETES_VERSION}`

/**
 * The path of a kubelet, built if the cache has none.
 * @throws {Error} with the last words of what failed
 */
export function provideKubelet(say: (text: string) => void): string {
  return kubernetesProgram({ name: 'kubelet', flags: ['-ldflags', `-s -w -X ${VERSION}`] }, say)
}
