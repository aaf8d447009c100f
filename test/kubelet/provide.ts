import { provideRuntime } from '../../scripts/fetch/packages.ts'
import { provideKubectl } from '../kubernetes/render.ts'
import { provideKubelet } from './provide/kubelet.ts'
import { Clock } from './report/clock.ts'

// Fills the cache, for a run that is to come.
const say = (text: string) => console.log(text)
const clock = new Clock(say)
clock.measure('containerd and runc', provideRuntime)
clock.measure('kubectl', provideKubectl)
clock.measure('kubelet', () => provideKubelet(say))
