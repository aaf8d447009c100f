/** What becomes of an option of another driver. */
export type Fate =
  /** It is all of the source. */
  | { to: 'source' }
  /** Together they are the source: `//server/share`, `server:/directory`. */
  | { to: 'server' }
  | { to: 'path' }
  /** A list with commas. */
  | { to: 'mountOptions' }
  /** It has no counterpart; where its value is one of `idle` it changed nothing anyway. */
  | { to: 'nothing'; idle?: readonly string[]; why: string; remedy: string }

/** A FlexVolume driver whose volumes modekeep can mount. */
export interface KnownDriver {
  /** As manifests write it: `vendor/driver`. */
  names: readonly string[]
  fsType: 'cifs' | 'nfs'
  options: Readonly<Record<string, Fate>>
  /** What its Secret has; modekeep reads the same keys. Without them it takes no Secret. */
  secretKeys: readonly string[]
  /** It shows a pod's `fsGroup` by mount options itself, and not only where somebody writes them. */
  givesGroup?: true
}

/** One whose volumes modekeep cannot mount: they are left as they are. */
export interface OtherDriver {
  names: readonly string[]
  /** The options that it reads. */
  options: readonly string[]
  secretKeys: readonly string[]
  why: string
  remedy: string
}

/** The keys are those that each driver's own source reads. */
export const KNOWN: readonly KnownDriver[] = [
  {
    names: ['fstab/cifs'],
    fsType: 'cifs',
    options: {
      networkPath: { to: 'source' },
      mountOptions: { to: 'mountOptions' },
      selinuxEnabled: {
        to: 'nothing',
        idle: ['false', ''],
        why: 'modekeep mounts with no SELinux context',
        remedy: 'set "capabilities": {"selinuxRelabel": true} in the configuration of the nodes',
      },
    },
    secretKeys: ['username', 'password'],
  },
  {
    names: ['juliohm/cifs'],
    fsType: 'cifs',
    options: {
      server: { to: 'server' },
      share: { to: 'path' },
      opts: { to: 'mountOptions' },
    },
    secretKeys: ['username', 'password', 'domain'],
    givesGroup: true,
  },
  {
    names: ['microsoft.com/smb'],
    fsType: 'cifs',
    options: {
      source: { to: 'source' },
      mountoptions: { to: 'mountOptions' },
      mountOptions: { to: 'mountOptions' },
    },
    secretKeys: ['username', 'password', 'domain'],
  },
  {
    names: ['k8s/nfs'],
    fsType: 'nfs',
    options: { server: { to: 'server' }, share: { to: 'path' } },
    secretKeys: [],
  },
]

export const OTHERS: readonly OtherDriver[] = [
  {
    names: ['azure/blobfuse'],
    options: ['container', 'tmppath', 'mountoptions'],
    secretKeys: ['accountname', 'accountkey'],
    why: 'blobfuse takes its account from the environment, which modekeep gives no program',
    remedy:
      'use the CSI driver blob.csi.azure.com (its containerName is "container", its Secret has azurestorageaccountname ' +
      'and azurestorageaccountkey), or mount the container on the nodes and name that directory as the "source" of a bind',
  },
  {
    names: ['azure/kv'],
    options: [
      'keyvaultname',
      'keyvaultobjectnames',
      'keyvaultobjecttypes',
      'keyvaultobjectaliases',
      'keyvaultobjectversions',
      'tenantid',
      'usepodidentity',
    ],
    secretKeys: ['clientid', 'clientsecret'],
    why: 'it fetches the content of a vault, and modekeep only mounts what is there',
    remedy: 'use the CSI driver secrets-store.csi.k8s.io with a SecretProviderClass of the provider azure',
  },
  {
    names: [
      'ceph.rook.io/rook',
      'ceph.rook.io/rook-ceph',
      'ceph.rook.io/rook-ceph-system',
      'rook.io/rook',
      'rook.io/rook-system',
    ],
    options: [
      'fsName',
      'path',
      'clusterNamespace',
      'clusterName',
      'mountUser',
      'mountSecret',
      'pool',
      'image',
      'storageClass',
    ],
    secretKeys: [],
    why: "Rook's agent finds the cluster and attaches its images, and modekeep has no kind for Ceph",
    remedy:
      'use the CSI drivers of ceph-csi, or mount the file system on the nodes and name the directory ("fsName" and "path") as the "source" of a bind',
  },
]

/** Options of mount(8) and fstab(5) that say nothing to a file system: those of networks, booting and users; `intr` the kernel ignores. */
export const IDLE_MOUNT_OPTIONS = /^(_netdev|nofail|auto|noauto|user|users|nouser|defaults|n?o?intr|x-.*|comment=.*)$/
