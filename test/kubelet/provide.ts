import { provideKubelet } from './provide/kubelet.ts'
import { provideRuntime } from './provide/packages.ts'
import { Clock } from './report/clock.ts'

// Fills the cache, for a run that is to come.
const say = (text: string) => console.log(text)
const clock = new Clock(say)
clock.measure('containerd and runc', provideRuntime)
clock.measure('kubelet', () => provideKubelet(say))
