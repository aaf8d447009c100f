import { CIFS_OPTION_TEXTS } from './cifs-descriptions.ts'

/** What the kinds and their mount options mean to a reader of docs/options.md, for whose generator alone this is. */
export interface KindText {
  text: string
  /** A source as a pod names it, '' for none. */
  source: string
}

export const VOLUME_KIND_TEXTS: Readonly<Record<string, KindText>> = {
  bind: { text: 'a directory of the node', source: '/srv/volumes/data' },
  tmpfs: { text: 'memory of the node, new and empty', source: '' },
  ext4: { text: 'a disk or an image file', source: '/srv/volumes/database.img' },
  xfs: { text: 'a disk or an image file', source: '/dev/disk/by-id/scsi-0QEMU_data' },
  btrfs: { text: 'a disk or an image file, or a subvolume of it', source: '/srv/volumes/pool.img' },
  squashfs: { text: 'a read-only disk or image file', source: '/srv/volumes/assets.squashfs' },
  nfs: { text: 'an export of an NFS server', source: 'nfs.example.com:/exports/data' },
  nfs4: { text: 'the same, version 4 alone', source: 'nfs.example.com:/exports/data' },
  cifs: { text: 'a share of an SMB server', source: '//files.example.com/team' },
  'fuse.sshfs': { text: 'a directory of an SSH server', source: 'bob@files.example.com:/srv/files' },
  'fuse.bindfs': { text: 'a directory of the node with other owners', source: '/srv/volumes/legacy' },
  'fuse.squashfuse': { text: 'a squashfs image, read by a daemon', source: '/srv/volumes/tools.squashfs' },
}

type OptionTexts = Readonly<Record<string, string>>

/** Flags of the mount, which every kind takes. */
export const MOUNT_FLAG_TEXTS: OptionTexts = {
  ro: 'read-only; no inode is changed',
  rw: 'writable, where the source is',
  nosuid: 'set-id bits and file capabilities have no effect (the default)',
  suid: 'they have',
  nodev: 'device nodes cannot be opened (the default)',
  dev: 'they can',
  noexec: 'nothing can be executed',
  exec: 'what the source allows can',
  relatime: 'access times are written about once a day (the default)',
  noatime: 'access times are not written',
  strictatime: 'access times are written always',
  nodiratime: 'those of directories are not',
  nosymfollow: 'symbolic links are not followed; Linux 5.14',
}

const tmpfsOptionTexts: OptionTexts = {
  size: 'most memory it may take, at most `tmpfsMaxSize` of the node; without it as much',
  nr_inodes: 'most files and directories, at most one for each KiB of `tmpfsMaxSize`; without it as many',
  mode: 'permission bits of its root',
  uid: 'owner of its root',
  gid: 'group of its root',
}

const ext4OptionTexts: OptionTexts = {
  data: '`ordered` (the default) journals metadata, `journal` content too',
  errors: 'what a damaged file system does; without it `remount-ro`',
  discard: 'reports free blocks to the disk (TRIM)',
  noload: 'leaves the journal as it is, for what must not be written',
}

const xfsOptionTexts: OptionTexts = {
  nouuid:
    'mounts a copy of a disk that is mounted too, with `ownership: idmap` or `none`. A walk of the copy needs a UUID of its own (`xfs_admin -U generate`), and then no `nouuid`',
  noquota: 'keeps no quotas',
  discard: 'reports free blocks to the disk (TRIM)',
  norecovery: 'leaves the log as it is, for what must not be written',
}

const btrfsOptionTexts: OptionTexts = {
  subvol: 'the subvolume, by its path',
  subvolid: 'the subvolume, by its number',
  compress: 'how new content is compressed; also `zlib`, `lzo`, `no`',
  rescue: 'leaves the log as it is, for what must not be written',
  discard: 'reports free blocks to the disk (TRIM)',
}

const nfsOptionTexts: OptionTexts = {
  vers: "the protocol's version",
  nfsvers: 'the same',
  minorversion: 'the minor number of version 4',
  proto: 'the transport',
  mountproto: "the transport to the server's mount daemon (version 3)",
  mountvers: 'the version of its mount daemon (version 3)',
  sec: 'how requests are authenticated and protected',
  xprtsec:
    'encryption of the connection (Linux 6.5, `tlshd` of ktls-utils on the node); `mtls` also shows the certificate of the node',
  lookupcache: 'which names may be answered from memory',
  local_lock: "which locks are the node's own and not the server's",
  hard: 'a request waits until the server is back (the default)',
  soft: 'a request fails after the last repetition, and may lose writes',
  softreval: 'answers from memory while the server is silent',
  softerr: 'as `soft`, with ETIMEDOUT',
  lock: "locks are the server's (the default)",
  nolock: "locks are the node's own (version 3)",
  cto: 'attributes are read again at each open (the default)',
  nocto: 'they are not',
  acl: 'speaks the ACL protocol (version 3)',
  noacl: 'does not',
  ac: 'keeps attributes in memory (the default)',
  noac: 'does not, and writes at once',
  rdirplus: 'reads attributes together with names (the default)',
  nordirplus: 'does not',
  sharecache: 'mounts of one export share their memory (the default)',
  nosharecache: 'they do not',
  resvport: 'connects from a port below 1024 (the default)',
  noresvport: 'from any port',
  fsc: "keeps content on the node's disk too (cachefilesd)",
  nofsc: 'does not (the default)',
  port: "the server's port",
  mountport: 'that of its mount daemon (version 3)',
  timeo: 'tenths of a second before a request is repeated',
  retrans: 'how often, before the node says that the server is silent',
  rsize: 'most bytes of one read',
  wsize: 'most bytes of one write',
  nconnect: 'how many connections',
  max_connect: 'to how many addresses of the server',
  actimeo: 'all four of the following, in seconds',
  acregmin: 'how long attributes of files are kept at least',
  acregmax: 'and at most',
  acdirmin: 'those of directories at least',
  acdirmax: 'and at most',
}

const fuseOptionTexts: OptionTexts = {
  uid: "all files are this user's",
  gid: "all files are this group's",
  umask: 'permission bits taken from all files',
  attr_timeout: 'seconds for which attributes are kept',
  entry_timeout: 'seconds for which names are kept',
  negative_timeout: 'seconds for which it is kept that a name is not there',
  max_read: 'most bytes of one read',
  kernel_cache: 'content stays in memory when a file is opened again',
  auto_cache: 'so long as size and mtime are the same',
  noauto_cache: 'it does not',
  direct_io: 'content is never kept in memory',
  noforget: 'file handles stay valid permanently, for NFS exports',
  hard_remove: 'a file that is deleted while open is deleted at once',
}

const sshfsOptionTexts: OptionTexts = {
  port: "the server's port",
  ServerAliveInterval: 'seconds of silence before the server is asked whether it is there; without it 15',
  ServerAliveCountMax: 'how often, before the connection ends; without it 3',
  ConnectTimeout: 'seconds a connection may take; without it 30',
  Compression: 'ssh compresses',
  compression: 'sshfs has ssh compress',
  dir_cache: 'names and attributes are kept',
  dcache_timeout: 'for how many seconds',
  idmap: "`user`: files of the user one logs in as are shown as root's",
  max_conns: 'how many connections',
  reconnect: 'connects again, with a password alone',
  follow_symlinks: 'links are followed on the server',
  transform_symlinks: 'absolute links are shown as relative ones',
  disable_hardlink: 'link(2) fails',
  no_readahead: 'reads nothing ahead',
  sshfs_sync: 'writes at once',
}

const bindfsOptionTexts: OptionTexts = {
  'force-user': "all files are this user's",
  'force-group': "all files are this group's",
  perms: 'permission bits of all files',
  map: 'shows some users and groups as others',
  'create-for-user': "new files are this user's",
  'create-for-group': "new files are this group's",
  'create-with-perms': 'permission bits of new files',
  'create-as-user': "new files are their maker's",
  'chown-ignore': 'chown succeeds and does nothing',
  'chgrp-ignore': 'chgrp likewise',
  'chmod-ignore': 'chmod likewise',
  'xattr-none': 'there are no extended attributes',
  'delete-deny': 'nothing can be deleted',
  'rename-deny': 'nothing can be renamed',
  'hide-hard-links': 'the number of links reads 1',
  multithreaded: 'more than one thread serves',
}

/** By kind, for options that `optionRules` names. */
export const MOUNT_OPTION_TEXTS: Readonly<Record<string, OptionTexts>> = {
  bind: {},
  tmpfs: tmpfsOptionTexts,
  ext4: ext4OptionTexts,
  xfs: xfsOptionTexts,
  btrfs: btrfsOptionTexts,
  squashfs: {},
  nfs: nfsOptionTexts,
  nfs4: nfsOptionTexts,
  cifs: CIFS_OPTION_TEXTS,
  'fuse.sshfs': { ...fuseOptionTexts, ...sshfsOptionTexts },
  'fuse.bindfs': { ...fuseOptionTexts, ...bindfsOptionTexts },
  'fuse.squashfuse': { ...fuseOptionTexts, offset: 'where in the file the image begins' },
}
