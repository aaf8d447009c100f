import type { Resource } from './render.ts'

export const LEVELS = ['restricted', 'baseline', 'privileged'] as const
export type Level = (typeof LEVELS)[number]

// pod-security-admission/policy/check_restrictedVolumes.go and check_capabilities_baseline.go
const RESTRICTED_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]
const BASELINE_CAPABILITIES = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]

/** The strictest Pod Security level that lets a pod be, of what modekeep's own manifests use. Pure. */
export function levelOf(spec: Resource): Level {
  const containers: Resource[] = [...(spec.initContainers ?? []), ...spec.containers]
  const contexts = containers.map(({ securityContext = {} }) => securityContext)
  const volumes: Resource[] = spec.volumes ?? []
  const isBaseline =
    !(spec.hostPID || spec.hostNetwork || spec.hostIPC) &&
    volumes.every(({ hostPath }) => hostPath === undefined) &&
    contexts.every(
      ({ privileged, capabilities }) =>
        !privileged && (capabilities?.add ?? []).every((one: string) => BASELINE_CAPABILITIES.includes(one)),
    )
  if (!isBaseline) return 'privileged'
  const own: Resource = spec.securityContext ?? {}
  const isRestricted =
    own.runAsNonRoot === true &&
    own.seccompProfile !== undefined &&
    volumes.every((volume) => RESTRICTED_VOLUMES.some((type) => type in volume)) &&
    contexts.every(
      ({ allowPrivilegeEscalation, capabilities }) =>
        allowPrivilegeEscalation === false && capabilities?.drop?.includes('ALL') && capabilities.add === undefined,
    )
  return isRestricted ? 'restricted' : 'baseline'
}

/** What a manifest's file says of its pods. @throws {Error} where it says nothing */
export function saidLevel(text: string): Level {
  const said = /^# Pod Security level: (\w+)\.$/m.exec(text)?.[1]
  const level = LEVELS.find((one) => one === said)
  if (level === undefined) throw new Error(`no Pod Security level is written: ${text.slice(0, 80)}`)
  return level
}

/** The pods of resources, by the name of the resource: Pods, and templates of other resources. */
export function podSpecs(resources: readonly Resource[]): { name: string; spec: Resource }[] {
  return resources.flatMap(({ kind, metadata, spec }) => {
    const pod = kind === 'Pod' ? spec : spec?.template?.spec
    return pod === undefined ? [] : [{ name: metadata.name, spec: pod }]
  })
}
