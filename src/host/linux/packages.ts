/** Program -> its package on Debian, and on distributions with RPM where that has another name. */
const PACKAGES: Readonly<Record<string, readonly [debian: string, rpm?: string]>> = {
  'mount.nfs': ['nfs-common', 'nfs-utils'],
  'mount.nfs4': ['nfs-common', 'nfs-utils'],
  'mount.cifs': ['cifs-utils'],
  fusermount3: ['fuse3'],
  archivemount: ['archivemount'],
  bindfs: ['bindfs'],
  borgfs: ['borgbackup'],
  'ceph-fuse': ['ceph-fuse'],
  cryfs: ['cryfs'],
  encfs: ['encfs', 'fuse-encfs'],
  'fuse-overlayfs': ['fuse-overlayfs'],
  'fuse-zip': ['fuse-zip'],
  fuse2fs: ['fuse2fs'],
  fuseiso: ['fuseiso'],
  glusterfs: ['glusterfs-client', 'glusterfs-fuse'],
  gocryptfs: ['gocryptfs'],
  httpfs2: ['httpfs2'],
  lxcfs: ['lxcfs'],
  mergerfs: ['mergerfs'],
  'ntfs-3g': ['ntfs-3g'],
  rclone: ['rclone'],
  rclonefs: ['rclone and link it (ln -s rclone /usr/bin/rclonefs)'],
  s3fs: ['s3fs', 's3fs-fuse'],
  squashfuse: ['squashfuse'],
  squashfuse_ll: ['squashfuse'],
  sshfs: ['sshfs', 'fuse-sshfs'],
  'unionfs-fuse': ['unionfs-fuse'],
}

/** As a message names it; undefined for a program nobody knows the package of. */
export function packageOf(program: string): string | undefined {
  const [debian, rpm] = Object.hasOwn(PACKAGES, program) ? (PACKAGES[program] ?? []) : []
  return rpm === undefined ? debian : `${debian} (Debian) or ${rpm} (RPM)`
}
