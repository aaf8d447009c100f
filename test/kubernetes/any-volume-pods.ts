import type { Resource } from './render.ts'

export const claim = { name: 'data', persistentVolumeClaim: { claimName: 'data' } }
const TEMPLATE = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
const CONTAINER = { name: 'c', image: 'i' }
export const withFsGroup = (...volumes: object[]) => ({ securityContext: { fsGroup: 2000 }, volumes })

interface TestPod {
  metadata?: { annotations?: Record<string, string> }
  spec: Resource
}

/** A pod as the API server has it when it calls the policies, and whether it is annotated. */
export const PODS: readonly (readonly [title: string, pod: TestPod, isAnnotated: boolean])[] = [
  ['with an fsGroup and a claim', { spec: withFsGroup(claim) }, true],
  [
    'with an fsGroup and an ephemeral claim',
    { spec: withFsGroup({ name: 'a', ephemeral: { volumeClaimTemplate: { spec: TEMPLATE } } }) },
    true,
  ],
  ['with an fsGroup and an inline CSI volume', { spec: withFsGroup({ name: 'a', csi: { driver: 'd' } }) }, true],
  ['with an fsGroup and an emptyDir', { spec: withFsGroup({ name: 'a', emptyDir: {} }) }, true],
  ['with other annotations', { metadata: { annotations: { a: 'b' } }, spec: withFsGroup(claim) }, true],
  [
    'with the annotation',
    { metadata: { annotations: { 'modekeep/group': 'data=1' } }, spec: withFsGroup(claim) },
    false,
  ],
  ['without an fsGroup', { spec: { securityContext: { runAsUser: 1 }, volumes: [claim] } }, false],
  ['without a security context', { spec: { volumes: [claim] } }, false],
  ['without volumes', { spec: { securityContext: { fsGroup: 2000 } } }, false],
  [
    'with a hostPath and a Secret alone',
    { spec: withFsGroup({ name: 'h', hostPath: { path: '/srv' } }, { name: 's', secret: { secretName: 's' } }) },
    false,
  ],
]

/** Kubernetes writes these defaults before it calls the policies. */
const tokenVolume = {
  name: 'kube-api-access-x',
  projected: { defaultMode: 0o644, sources: [{ serviceAccountToken: { path: 'token' } }] },
}
const withVolumes = (...volumes: object[]) => ({ spec: withFsGroup(claim, tokenVolume, ...volumes) })

export const toPod = ({ metadata = {}, spec }: TestPod) => ({
  metadata,
  spec: { containers: [CONTAINER], ...spec },
})

const add = (path: string, value: unknown) => ({ op: 'add', path, value })
const ADD_ANNOTATIONS = add('/metadata/annotations', {})
const ADD_GROUP = add('/metadata/annotations/modekeep~1group', '2000')
const ADD_PLUGIN = add('/metadata/annotations/required-plugins.noderesource.dev', '["modekeep"]')
const REMOVE_FS_GROUP = { op: 'remove', path: '/spec/securityContext/fsGroup' }
const addGroups = (...groups: number[]) => add('/spec/securityContext/supplementalGroups', groups)

const requiring = (plugins: string, part = '') => ({
  metadata: { annotations: { [`required-plugins.noderesource.dev${part}`]: plugins } },
  ...withVolumes(),
})
const mounting = (mount: object, list = 'containers') => {
  const { spec } = withVolumes({ name: 'h', hostPath: { path: '/srv' } })
  return { spec: { ...spec, [list]: [{ ...CONTAINER, volumeMounts: [{ name: 'h', mountPath: '/h', ...mount }] }] } }
}

/** Pods whose fsGroup is moved, and the JSON patch for it. */
export const REPLACED: readonly (readonly [title: string, pod: TestPod, patch: object[]])[] = [
  ['without annotations', withVolumes(), [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP]],
  [
    'with an annotation',
    { metadata: { annotations: { a: 'b' } }, ...withVolumes() },
    [ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP],
  ],
  [
    'with another supplemental group',
    { spec: { securityContext: { fsGroup: 2000, supplementalGroups: [7] }, volumes: [claim] } },
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(7, 2000), REMOVE_FS_GROUP],
  ],
  [
    'with its group in supplementalGroups',
    { spec: { securityContext: { fsGroup: 2000, supplementalGroups: [2000] }, volumes: [claim] } },
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, REMOVE_FS_GROUP],
  ],
  ['that requires modekeep', requiring('["other","modekeep"]'), [ADD_GROUP, addGroups(2000), REMOVE_FS_GROUP]],
  [
    'that requires modekeep for a container',
    requiring('["other","modekeep"]', '/container.c'),
    [ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP],
  ],
  [
    'with a Secret that others may read, a hostPath and an image',
    withVolumes(
      { name: 's', secret: { secretName: 's', defaultMode: 0o444, items: [{ key: 'k', path: 'k', mode: 0o644 }] } },
      { name: 'h', hostPath: { path: '/srv' } },
      { name: 'i', image: { reference: 'r' } },
    ),
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP],
  ],
  [
    'with the whole of a hostPath',
    mounting({}),
    [ADD_ANNOTATIONS, ADD_GROUP, ADD_PLUGIN, addGroups(2000), REMOVE_FS_GROUP],
  ],
]

const closed = [{ key: 'k', path: 'k', mode: 0o440 }]
const closedFields = [{ path: 'k', mode: 0o440, fieldRef: { fieldPath: 'metadata.name' } }]
/** Pods that would lose access without their fsGroup, and the end of the reason. */
export const REFUSED: readonly (readonly [title: string, pod: TestPod, reason: string])[] = [
  ['with a Secret of 0400', withVolumes({ name: 's', secret: { secretName: 's', defaultMode: 0o400 } }), 'files of s:'],
  [
    'with a Secret, one file of which is 0440',
    withVolumes({ name: 's', secret: { secretName: 's', items: closed } }),
    'files of s:',
  ],
  ['with a ConfigMap of 0640', withVolumes({ name: 'c', configMap: { name: 'c', defaultMode: 0o640 } }), 'files of c:'],
  [
    'with a ConfigMap, one file of which is 0440',
    withVolumes({ name: 'c', configMap: { name: 'c', items: closed } }),
    'files of c:',
  ],
  [
    'with a downward API volume of 0400',
    withVolumes({ name: 'd', downwardAPI: { defaultMode: 0o400 } }),
    'files of d:',
  ],
  [
    'with a downward API volume, one file of which is 0440',
    withVolumes({ name: 'd', downwardAPI: { items: closedFields } }),
    'files of d:',
  ],
  [
    'with a token volume of 0400',
    withVolumes({ ...tokenVolume, name: 't', projected: { ...tokenVolume.projected, defaultMode: 0o400 } }),
    'files of t:',
  ],
  ...Object.entries({
    secret: { name: 's', items: closed },
    configMap: { name: 'c', items: closed },
    downwardAPI: { items: closedFields },
  }).map(
    ([kind, source]) =>
      [
        `with a projected ${kind}, one file of which is 0440`,
        withVolumes({ name: 'p', projected: { sources: [{ [kind]: source }] } }),
        'files of p:',
      ] as const,
  ),
  [
    'with two such volumes',
    withVolumes(
      { name: 'a', secret: { secretName: 's', defaultMode: 0 } },
      { name: 'b', secret: { secretName: 's', defaultMode: 0 } },
    ),
    'files of a, b:',
  ],
  ['with an NFS volume', withVolumes({ name: 'n', nfs: { server: 's', path: '/' } }), 'no volume such as n:'],
  [
    "with an inline volume of modekeep's CSI driver",
    withVolumes({ name: 'm', csi: { driver: 'modekeep.csi' } }),
    'no volume such as m:',
  ],
  [
    "with an inline volume of modekeep's FlexVolume driver",
    withVolumes({ name: 'm', flexVolume: { driver: 'modekeep/fs' } }),
    'no volume such as m:',
  ],
  ['with a subPath of a hostPath', mounting({ subPath: 'a' }), 'subPath of the hostPath h:'],
  ['with a subPathExpr of a hostPath', mounting({ subPathExpr: 'a' }), 'subPath of the hostPath h:'],
  [
    'with a subPath of a hostPath in an init container',
    { spec: { ...mounting({ subPath: 'a' }, 'initContainers').spec, containers: [{ ...CONTAINER, name: 'main' }] } },
    'subPath of the hostPath h:',
  ],
  ...['', '/pod', '/container.c'].map(
    (part) =>
      [
        `that requires another plugin alone by the key with ${part || 'no part'}`,
        requiring('["other"]', part),
        'add "modekeep" to its list',
      ] as const,
  ),
]
