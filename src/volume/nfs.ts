import { formatSource } from '../config/source.ts'
import { createFault } from '../errors/fault.ts'
import { type Handle, refuseOnErrno, useHandleOrClose } from '../kernel/host.ts'
import type { MountContext, VolumeKind } from './kind/kind.ts'
import {
  createChoiceRules,
  createLazyOptionRules,
  createNumberRules,
  createSecurityRules,
  createWordRules,
  FSTAB_OPTION_REMEDIES,
  findOptionFaults,
  markValuesThatNeedNaming,
  type OptionRemedies,
  parseOptionName,
} from './kind/options.ts'
import { findRemoteSourceFaults } from './kind/source-path.ts'
import { mountRemoteSource, UNPRIVILEGED_MOUNT_OPTIONS } from './kind/staged.ts'

const NFS_VERSIONS = ['4.2', '4.1', '4.0', '4', '3']
const NFS_TRANSPORTS = ['tcp', 'tcp6', 'udp', 'udp6', 'rdma']

/** Options of nfs(5), without bg, which delays a mount, and without those that name a server other than the source. */
const NFS_OPTION_RULES = createLazyOptionRules(() => [
  ...createChoiceRules({ vers: NFS_VERSIONS, nfsvers: NFS_VERSIONS, minorversion: ['0', '1', '2'] }),
  ...createChoiceRules({ proto: NFS_TRANSPORTS, mountproto: NFS_TRANSPORTS, mountvers: ['3'] }),
  ...createSecurityRules('sys', 'krb5', 'krb5i', 'krb5p', 'none'),
  // The server identifies this node by its certificate with mtls.
  ...markValuesThatNeedNaming(['mtls'], createChoiceRules({ xprtsec: ['none', 'tls', 'mtls'] })),
  ...createChoiceRules({
    lookupcache: ['all', 'none', 'pos', 'positive'],
    local_lock: ['none', 'all', 'flock', 'posix'],
  }),
  ...createWordRules(
    'hard',
    'soft',
    'softreval',
    'softerr',
    'lock',
    'nolock',
    'cto',
    'nocto',
    'acl',
    'noacl',
    'ac',
    'noac',
  ),
  ...createWordRules('rdirplus', 'nordirplus', 'sharecache', 'nosharecache', 'resvport', 'noresvport', 'fsc', 'nofsc'),
  ...createNumberRules({
    port: 2049,
    mountport: 20048,
    timeo: 600,
    retrans: 2,
    rsize: 1048576,
    wsize: 1048576,
    nconnect: 4,
  }),
  ...createNumberRules({ actimeo: 30, acregmin: 3, acregmax: 60, acdirmin: 30, acdirmax: 60, max_connect: 1 }),
])

const NFS_OPTION_REMEDIES: OptionRemedies = new Map([
  ...FSTAB_OPTION_REMEDIES,
  ['tcp', 'instead of tcp write proto=tcp'],
  ['udp', 'instead of udp write proto=udp'],
  ['rdma', 'instead of rdma write proto=rdma'],
  ['intr', 'leave intr out, as the kernel ignores it'],
  ['nointr', 'leave nointr out, as the kernel ignores it'],
  ['retry', 'leave retry out, as kubelet tries again by itself'],
  ['bg', 'leave bg out, as kubelet tries again by itself'],
  ['fg', 'leave fg out, as every mount is made in the foreground'],
])

export const nfsKind: VolumeKind = createNfsKind('nfs')

/** An export that is mounted with version 4 only. */
export const nfs4Kind: VolumeKind = createNfsKind('nfs4')

function createNfsKind(name: 'nfs' | 'nfs4'): VolumeKind {
  return {
    name,
    persistent: true,
    walk: true,
    root: 'text',
    isRemote: true,
    optionRules: NFS_OPTION_RULES,

    faults: (request) => [
      ...findRemoteSourceFaults(request, 'export'),
      ...findOptionFaults(name, request.mountOptions, NFS_OPTION_RULES(), false, NFS_OPTION_REMEDIES),
    ],

    async openTree(context) {
      const { host, request } = context
      // Without sec the server may choose Kerberos, and with it this node's identity.
      const flavour = request.mountOptions.some((option) => parseOptionName(option) === 'sec') ? [] : ['sec=sys']
      // Kubelet retries by itself and reports the reason: mount.nfs would retry for two minutes without a message.
      // Version 3 needs rpc.statd(8), which mount.nfs starts for the whole node.
      const tree = await mountRemoteSource(context, [...UNPRIVILEGED_MOUNT_OPTIONS, 'retry=0', ...flavour], {
        leavesDaemon: true,
      })
      return useHandleOrClose(host.inodes, tree, () => {
        refuseSquashedRoot(context, tree)
        return tree
      })
    },
  }
}

/**
 * Refuses a server that squashes root or exports read-only, because a walk would fail at every inode. The check is a chown
 * of the root to its current group, which changes only its ctime, as the walk will. No call without an effect shows the
 * squashed identity.
 */
function refuseSquashedRoot({ host: { inodes }, request }: MountContext, tree: Handle): void {
  const { ownership, readOnly, source, fsGroup } = request
  const { groupId } = fsGroup
  if (groupId === undefined || readOnly || (ownership !== 'walk' && ownership !== 'auto')) return
  const { gid } = inodes.stat(tree)
  if (gid === groupId) return
  refuseOnErrno(
    () => inodes.chown(tree, gid),
    () => ({
      'EPERM EACCES': createFault(
        'root-squash',
        `the server of ${formatSource(source)} squashes root, so this node cannot give group ${groupId} to its files`,
        'export it with no_root_squash, or leave "ownership" out and give them the group on the server',
      ),
      EROFS: createFault(
        'source-read-only',
        `the server of ${formatSource(source)} exports it read-only, so this node cannot give group ${groupId} to its files`,
        'export it for writing, or leave "ownership" out and give them the group on the server',
      ),
    }),
  )
}
