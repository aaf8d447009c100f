import { provideClients } from '../../scripts/fetch/clients.ts'
import {
  createVersionedProgram,
  KUBERNETES_VERSION,
  type KubernetesProgram,
  provideKubernetesProgram,
} from '../../scripts/fetch/kubernetes.ts'
import { provideContainerRuntime, provideControlPlane } from '../../scripts/fetch/packages.ts'
import { OLDEST_SUITE_RUNTIME, provideDebianSuite } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'
import { Clock } from '../kubelet/report/clock.ts'
import { given } from './given.ts'
import { PROGRAMS, type Programs } from './programs.ts'

/**
 * Fills the cache with all that a run needs: inside of it there is no network.
 * @param directory has programs of another version; '' for those that are built
 * @throws {Error} with the last words of what failed, or what the directory lacks
 */
export function provide(directory: string, clock: Clock, say: (text: string) => void): Programs {
  const { runtime, over } = provideNri(clock, say)
  const { etcd, plugins } = clock.measure('etcd and the network of pods', provideControlPlane)
  clock.measure('kubectl that knows components, and helm', provideClients)
  if (directory !== '') return given(directory, { runtime, over, etcd, plugins })
  const built = PROGRAMS.map((name) => {
    const path = clock.measure(name, () => provideKubernetesProgram(createProgram(name), say))
    return [name, path] as const
  })
  return { runtime, over, etcd, plugins, kubernetes: Object.fromEntries(built) as Programs['kubernetes'] }
}

/** The API server replies to requests of its version with a variable that `--version` does not print; helm reads it. */
const SERVED_VERSION_VARIABLE = 'k8s.io/kubernetes/vendor/k8s.io/client-go/pkg/version.gitVersion'

function createProgram(name: string): KubernetesProgram {
  const program = createVersionedProgram(name)
  if (name !== 'kube-apiserver') return program
  const served = ` -X ${SERVED_VERSION_VARIABLE}=v${KUBERNETES_VERSION}`
  return { ...program, flags: program.flags?.map((flag) => (flag.startsWith('-s') ? flag + served : flag)) ?? [] }
}

/** The oldest containerd that asks plugins; without it that of the machine's own suite, which has no such cases. */
function provideNri(clock: Clock, say: (text: string) => void): Pick<Programs, 'runtime' | 'over'> {
  const own = clock.measure('containerd and runc', provideContainerRuntime)
  try {
    const { root } = clock.measure('containerd that asks plugins', () => provideDebianSuite(OLDEST_SUITE_RUNTIME))
    return { runtime: { ...own, path: '/usr/sbin:/usr/bin' }, over: root }
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
    say(`containerd is of the machine's own suite: ${error.message}`)
    return { runtime: own, over: undefined }
  }
}

// Run by itself it does this for a run that is to come.
if (import.meta.main) provide('', new Clock(console.log), console.log)
