import { type KernelFeatureName, probeKernelFeatures } from '../../src/kernel/linux/diagnosis.ts'
import { isRoot } from './stage.ts'

/** Whether this kernel has a feature, by a probe as root. Without root: true, as tests of it are skipped for that. */
export function hasKernelFeature(name: KernelFeatureName): boolean {
  return !isRoot || probeKernelFeatures().some((feature) => feature.name === name && feature.works)
}
