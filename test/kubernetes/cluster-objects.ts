/** The resources that `kubectl modekeep any-volume check` reads, by their plural names. */
export const CLUSTER_RESOURCES = {
  namespaces: { group: '', kind: 'Namespace', isNamespaced: false },
  persistentvolumeclaims: { group: '', kind: 'PersistentVolumeClaim', isNamespaced: true },
  persistentvolumes: { group: '', kind: 'PersistentVolume', isNamespaced: false },
  nodes: { group: '', kind: 'Node', isNamespaced: false },
  storageclasses: { group: 'storage.k8s.io', kind: 'StorageClass', isNamespaced: false },
  csidrivers: { group: 'storage.k8s.io', kind: 'CSIDriver', isNamespaced: false },
  mutatingadmissionpolicies: {
    group: 'admissionregistration.k8s.io',
    kind: 'MutatingAdmissionPolicy',
    isNamespaced: false,
  },
} as const

export type ResourceName = keyof typeof CLUSTER_RESOURCES

interface ObjectMetadata {
  name: string
  namespace?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

type ClusterObject<Fields = object> = { metadata: ObjectMetadata } & Fields

interface VolumeSpec {
  accessModes?: string[]
  claimRef?: { namespace: string; name: string }
  [kind: string]: unknown
}

/** The objects of a cluster. An absent list is a resource that the API server does not serve. */
export interface ClusterObjects {
  namespaces?: ClusterObject[] | undefined
  persistentvolumeclaims?:
    | ClusterObject<{
        spec: { volumeName?: string; storageClassName?: string; accessModes: string[]; volumeMode?: string }
      }>[]
    | undefined
  persistentvolumes?: ClusterObject<{ spec: VolumeSpec }>[] | undefined
  nodes?:
    | ClusterObject<{
        status: { nodeInfo: { operatingSystem: string; kernelVersion: string; kubeletVersion: string } }
      }>[]
    | undefined
  storageclasses?: ClusterObject<{ provisioner: string; parameters?: Record<string, string> }>[] | undefined
  csidrivers?: ClusterObject<{ spec: { fsGroupPolicy?: string } }>[] | undefined
  mutatingadmissionpolicies?: ClusterObject[] | undefined
}

const quote = (text: string | undefined): string =>
  text === undefined || text === ''
    ? ''
    : `"${[...text].map((character) => (/[ !#-[\]-~]/.test(character) ? character : escapeCharacter(character))).join('')}"`

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (character === '"' || character === '\\') return `\\${character}`
  if (character === '\n') return '\\n'
  if (character === '\t') return '\\t'
  return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}

const isMap = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Formats one object as kubectl does with the output format that the plugin requests. A test with a real kubectl compares the two. */
const FORMATS: { [Name in ResourceName]: (object: NonNullable<ClusterObjects[Name]>[number]) => unknown[] } = {
  namespaces: ({ metadata }) => [metadata.labels?.['modekeep/any-volume']],
  persistentvolumeclaims: ({ metadata, spec }) => [
    metadata.name,
    spec.volumeName,
    spec.storageClassName,
    spec.accessModes.join(' '),
    spec.volumeMode,
  ],
  persistentvolumes: ({ metadata, spec }) => [
    metadata.name,
    spec.claimRef && `${spec.claimRef.namespace}/${spec.claimRef.name}`,
    quote(metadata.annotations?.['pv.kubernetes.io/migrated-to']),
    (spec.accessModes ?? []).map((mode) => `${mode} `).join(''),
    ...Object.entries(spec)
      .filter(([, value]) => isMap(value))
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([kind, source]) => (isMap(source) ? [kind, quote(source.driver), quote(source.fsType)] : [])),
  ],
  nodes: ({ metadata, status: { nodeInfo } }) => [
    metadata.name,
    nodeInfo.operatingSystem,
    quote(nodeInfo.kernelVersion),
    quote(nodeInfo.kubeletVersion),
  ],
  storageclasses: ({ metadata, provisioner, parameters }) => [
    metadata.name,
    provisioner,
    quote(parameters?.['csi.storage.k8s.io/fstype'] ?? parameters?.fsType),
  ],
  csidrivers: ({ metadata, spec }) => [metadata.name, spec.fsGroupPolicy],
  mutatingadmissionpolicies: ({ metadata }) => [metadata.name],
}

/** Formats all objects of a resource, one a line, as the plugin's output format does. */
export function formatObjects<Name extends ResourceName>(name: Name, objects: ClusterObjects): string {
  const format = FORMATS[name] as (object: object) => unknown[]
  return (objects[name] ?? [])
    .map(
      (object) =>
        `${format(object)
          .map((field) => field ?? '')
          .join('\t')}\n`,
    )
    .join('')
}
