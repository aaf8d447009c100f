import type { Resource } from '../../kubernetes/render.ts'

/** Returns whether a pod of a DaemonSet is for this node. @param spec undefined: the pod was deleted meanwhile */
export function isForNode(spec: Resource | undefined, node: string): boolean {
  if (spec?.nodeName !== undefined) return spec.nodeName === node
  const terms: Resource[] =
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  return terms.some(({ matchFields = [] }) => matchFields.some(({ values }: Resource) => values.includes(node)))
}
