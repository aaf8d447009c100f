import { KUBERNETES_VERSION, kubernetesProgram } from '../../scripts/fetch/kubernetes.ts'
import { provideRuntime, type Runtime } from '../../scripts/fetch/packages.ts'
import { provideKubectl } from '../kubernetes/render.ts'
import { Clock } from './report/clock.ts'

// Without it the kubelet takes itself for version 0.0.0.
const VERSION = `k8s.io/component-base/version.gitVersion=v${KUBERNETES_VERSION}`
const FLAGS = ['-ldflags', `-s -w -X ${VERSION}`]

/**
 * Fills the cache with all that a run needs: inside of it there is no network.
 * @returns the paths of a kubelet and of the container runtime's programs
 * @throws {Error} with the last words of what failed
 */
export function provide(clock: Clock, say: (text: string) => void): { kubelet: string; runtime: Runtime } {
  const runtime = clock.measure('containerd and runc', provideRuntime)
  clock.measure('kubectl', provideKubectl)
  const kubelet = clock.measure('kubelet', () => kubernetesProgram({ name: 'kubelet', flags: FLAGS }, say))
  return { kubelet, runtime }
}

// Run by itself it does this for a run that is to come.
if (import.meta.main) provide(new Clock(console.log), console.log)
