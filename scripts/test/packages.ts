/** A Debian package that tests need, the programs they start of it, and what for. */
export interface TestPackage {
  name: string
  programs: readonly string[]
  needed: string
}

const one = (name: string, programs: string, needed: string): TestPackage => ({
  name,
  programs: programs.split(' ').filter(Boolean),
  needed,
})

/** The only list of what the tests need besides Node and Debian's essential packages. */
export const PACKAGES: readonly TestPackage[] = [
  one('apparmor', 'apparmor_parser', "the device plugin's AppArmor profile is compiled"),
  one('attr', 'getfattr setfattr', 'extended attributes of volumes'),
  one('btrfs-progs', 'btrfs mkfs.btrfs', 'volumes on btrfs'),
  one('e2fsprogs', 'chattr debugfs mkfs.ext4 tune2fs', 'volumes on ext4, immutable files'),
  one('squashfs-tools', 'mksquashfs', 'volumes on squashfs'),
  one('xfsprogs', 'mkfs.xfs xfs_admin', 'volumes on xfs'),
  one('libcap2-bin', 'capsh getcap setcap', 'file capabilities'),
  one('mount', 'losetup mount umount', 'every mount of a test'),
  one('util-linux', 'findmnt flock fsfreeze nsenter setarch setpriv taskset unshare', 'namespaces of the tests'),
  one('busybox', 'busybox', "installs with nothing but busybox's tools"),
  one('ca-certificates', '', "downloads of kubelet's source"),
  one('shellcheck', 'shellcheck', 'install.sh, kubectl-modekeep'),
  one('strace', 'strace', 'calls that are killed, or fail, at a chosen system call'),
  one('bindfs', 'bindfs', 'FUSE volumes'),
  one('fuse3', 'fusermount3', 'FUSE volumes'),
  one('squashfuse', 'squashfuse', 'FUSE volumes of an image'),
  one('sshfs', 'sshfs', 'FUSE volumes of a server'),
  one('openssh-client', 'ssh ssh-keygen', 'sshfs; the signature of a release'),
  one('openssh-server', 'sshd', 'the server of sshfs, on loopback'),
  one('cifs-utils', 'mount.cifs', 'shares'),
  one('samba', 'smbd smbpasswd', 'the server of shares, on loopback'),
  one('smbclient', 'smbclient', 'shares'),
  one('nfs-common', 'mount.nfs mount.nfs4', 'exports'),
  one('nfs-ganesha', 'ganesha.nfsd', 'the server of exports, on loopback'),
  one('nfs-ganesha-vfs', '', 'the server of exports, on loopback'),
  one('gcc', 'cc gcc', 'the other side of a race; the loader and the kernel addon are compiled again and compared'),
  one('libc6-dev', '', 'gcc'),
  one('gcc-aarch64-linux-gnu', 'aarch64-linux-gnu-gcc', 'the same for arm64'),
  one('libc6-dev-arm64-cross', '', 'the executable for arm64 is started'),
  one('qemu-user-static', 'qemu-aarch64-static qemu-x86_64-static', 'the executable for arm64 is started'),
  one('groff-base', 'groff', 'the man page'),
  one('mandoc', 'mandoc', 'the man page'),
  one('zsh', 'zsh', 'completion'),
  one('fish', 'fish', 'completion'),
  one('tmux', 'tmux', 'what people see, in a terminal of 60, 80 and 200 columns'),
]

/** @throws {Error} when no package of the list has the program */
export function packageOf(program: string): string {
  const found = PACKAGES.find(({ programs }) => programs.includes(program))
  if (!found) throw new Error(`scripts/test/packages.ts names no package for ${program}`)
  return found.name
}
