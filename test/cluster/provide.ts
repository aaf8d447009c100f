import { kubernetesProgram, ownProgram } from '../../scripts/fetch/kubernetes.ts'
import { provideControlPlane, provideRuntime } from '../../scripts/fetch/packages.ts'
import { Clock } from '../kubelet/report/clock.ts'
import { provideKubectl } from '../kubernetes/render.ts'
import { given } from './given.ts'
import { PROGRAMS, type Programs } from './programs.ts'

/**
 * Fills the cache with all that a run needs: inside of it there is no network.
 * @param directory has programs of another version; '' for those that are built
 * @throws {Error} with the last words of what failed, or what the directory lacks
 */
export function provide(directory: string, clock: Clock, say: (text: string) => void): Programs {
  const runtime = clock.measure('containerd and runc', provideRuntime)
  const { etcd, plugins } = clock.measure('etcd and the network of pods', provideControlPlane)
  clock.measure('kubectl that knows components', provideKubectl)
  if (directory !== '') return given(directory, { runtime, etcd, plugins })
  const built = PROGRAMS.map((name) => {
    const path = clock.measure(name, () => kubernetesProgram(ownProgram(name), say))
    return [name, path] as const
  })
  return { runtime, etcd, plugins, kubernetes: Object.fromEntries(built) as Programs['kubernetes'] }
}

// Run by itself it does this for a run that is to come.
if (import.meta.main) provide('', new Clock(console.log), console.log)
