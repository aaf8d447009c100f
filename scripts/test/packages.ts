/** A Debian package that tests need, the programs they start of it, and what for. */
export interface TestPackage {
  name: string
  programs: readonly string[]
  needed: string
}

const createTestPackage = (name: string, programs: string, needed: string): TestPackage => ({
  name,
  programs: programs.split(' ').filter(Boolean),
  needed,
})

/** The only list of what the tests need besides Node and Debian's essential packages. */
export const TEST_PACKAGES: readonly TestPackage[] = [
  createTestPackage('apparmor', 'apparmor_parser', "the device plugin's AppArmor profile is compiled"),
  createTestPackage('attr', 'getfattr setfattr', 'extended attributes of volumes'),
  createTestPackage('btrfs-progs', 'btrfs mkfs.btrfs', 'volumes on btrfs'),
  createTestPackage('e2fsprogs', 'chattr debugfs mkfs.ext4 tune2fs', 'volumes on ext4, immutable files'),
  createTestPackage('squashfs-tools', 'mksquashfs', 'volumes on squashfs'),
  createTestPackage('xfsprogs', 'mkfs.xfs xfs_admin', 'volumes on xfs'),
  createTestPackage('libcap2-bin', 'capsh getcap setcap', 'file capabilities'),
  createTestPackage('mount', 'losetup mount umount', 'every mount of a test'),
  createTestPackage(
    'util-linux',
    'findmnt flock fsfreeze nsenter prlimit setarch setpriv taskset unshare',
    'namespaces of the tests',
  ),
  createTestPackage('busybox', 'busybox', "installs with nothing but busybox's tools"),
  createTestPackage('ca-certificates', '', "downloads of kubelet's source"),
  createTestPackage('gawk', 'gawk', 'kubectl-modekeep'),
  createTestPackage('original-awk', 'original-awk', "kubectl-modekeep: macOS' awk"),
  createTestPackage('shellcheck', 'shellcheck', 'install.sh, kubectl-modekeep'),
  createTestPackage('strace', 'strace', 'calls that are killed, or fail, at a chosen system call'),
  createTestPackage('bindfs', 'bindfs', 'FUSE volumes'),
  createTestPackage('fuse3', 'fusermount3', 'FUSE volumes'),
  createTestPackage('squashfuse', 'squashfuse', 'FUSE volumes of an image'),
  createTestPackage('sshfs', 'sshfs', 'FUSE volumes of a server'),
  createTestPackage('openssh-client', 'ssh ssh-keygen', 'sshfs; the signature of a release'),
  createTestPackage('openssh-server', 'sshd', 'the server of sshfs, on loopback'),
  createTestPackage('cifs-utils', 'mount.cifs', 'shares'),
  createTestPackage('samba', 'smbd smbpasswd', 'the server of shares, on loopback'),
  createTestPackage('smbclient', 'smbclient', 'shares'),
  createTestPackage('nfs-common', 'mount.nfs mount.nfs4', 'exports'),
  createTestPackage('nfs-ganesha', 'ganesha.nfsd', 'the server of exports, on loopback'),
  createTestPackage('nfs-ganesha-vfs', '', 'the server of exports, on loopback'),
  createTestPackage(
    'gcc',
    'cc gcc',
    'the other side of a race; the loader and the kernel addon are compiled again and compared',
  ),
  createTestPackage('libc6-dev', '', 'gcc'),
  createTestPackage('gcc-aarch64-linux-gnu', 'aarch64-linux-gnu-gcc', 'the same for arm64'),
  createTestPackage('libc6-dev-arm64-cross', '', 'gcc-aarch64-linux-gnu'),
  createTestPackage(
    'qemu-user-static',
    'qemu-aarch64-static qemu-x86_64-static',
    'the executable for arm64 is started',
  ),
  createTestPackage('groff-base', 'groff', 'the man page'),
  createTestPackage('mandoc', 'mandoc', 'the man page'),
  createTestPackage('zsh', 'zsh', 'completion'),
  createTestPackage('fish', 'fish', 'completion'),
  createTestPackage('tmux', 'tmux', 'what people see, in a terminal of 60, 80 and 200 columns'),
]

/** @throws {Error} when no package of the list has the program */
export function findPackageOfProgram(program: string): string {
  const found = TEST_PACKAGES.find(({ programs }) => programs.includes(program))
  if (!found) throw new Error(`scripts/test/packages.ts names no package for ${program}`)
  return found.name
}
