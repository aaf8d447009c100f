import { provideClients } from '../../scripts/fetch/clients.ts'
import { createVersionedProgram, provideKubernetesProgram } from '../../scripts/fetch/kubernetes.ts'
import { type ContainerRuntime, provideContainerRuntime } from '../../scripts/fetch/packages.ts'
import { Clock } from './report/clock.ts'

/**
 * Fills the cache with all that a run needs: inside of it there is no network.
 * @returns the paths of a kubelet and of the container runtime's programs
 * @throws {Error} with the last words of what failed
 */
export function provide(clock: Clock, say: (text: string) => void): { kubelet: string; runtime: ContainerRuntime } {
  const runtime = clock.measure('containerd and runc', provideContainerRuntime)
  clock.measure('kubectl', provideClients)
  const kubelet = clock.measure('kubelet', () => provideKubernetesProgram(createVersionedProgram('kubelet'), say))
  return { kubelet, runtime }
}

// Run by itself it does this for a run that is to come.
if (import.meta.main) provide(new Clock(console.log), console.log)
