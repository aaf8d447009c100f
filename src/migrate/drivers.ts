/** Translation of an option of another driver. */
export type OptionMapping =
  /** The option is the whole source. */
  | { to: 'source' }
  /** `server` and `path` together are the source: `//server/share`, `server:/directory`. */
  | { to: 'server' }
  | { to: 'path' }
  /** A comma-separated list. */
  | { to: 'mountOptions' }
  /** The option has no counterpart. A value in `idle` had no effect. */
  | { to: 'nothing'; idle?: readonly string[]; why: string; remedy: string }

/** A FlexVolume driver whose volumes modekeep can mount. */
export interface SupportedDriver {
  /** Names in manifests: `vendor/driver`. */
  names: readonly string[]
  fsType: 'cifs' | 'nfs'
  options: Readonly<Record<string, OptionMapping>>
  /** Keys of its Secret; modekeep reads the same ones. Empty: it takes no Secret. */
  secretKeys: readonly string[]
  /** The driver itself shows a pod's `fsGroup` by mount options, even if the author writes none. */
  appliesGroup?: true
}

/** A driver whose volumes modekeep cannot mount. They are not changed. */
interface UnsupportedDriver {
  names: readonly string[]
  /** Options that the driver reads. */
  options: readonly string[]
  secretKeys: readonly string[]
  why: string
  remedy: string
}

/** The keys are those that each driver's own source reads. */
export const SUPPORTED_DRIVERS: readonly SupportedDriver[] = [
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
    appliesGroup: true,
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

export const UNSUPPORTED_DRIVERS: readonly UnsupportedDriver[] = [
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

/**
 * Options of mount(8) and fstab(5) that no file system reads: those for networks, booting and users. The kernel ignores
 * `intr`.
 */
export const IGNORED_MOUNT_OPTIONS =
  /^(_netdev|nofail|auto|noauto|user|users|nouser|defaults|n?o?intr|x-.*|comment=.*)$/
