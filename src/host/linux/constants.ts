// Kernel ABI (include/uapi/linux/{fcntl,mount,stat,openat2}.h). The flags below are equal on x86-64 and arm64
// except the three O_ flags that arm64 numbers differently.
const arm64 = process.arch === 'arm64'

export const O_DIRECTORY = arm64 ? 0o40000 : 0o200000
export const O_NOFOLLOW = arm64 ? 0o100000 : 0o400000
export const O_RDONLY = 0
export const O_NONBLOCK = 0o4000
export const O_NOATIME = 0o1000000
export const O_CLOEXEC = 0o2000000
export const O_PATH = 0o10000000

export const AT_FDCWD = -100
export const AT_SYMLINK_NOFOLLOW = 0x100
export const AT_REMOVEDIR = 0x200
export const AT_NO_AUTOMOUNT = 0x800
export const AT_EMPTY_PATH = 0x1000
export const AT_STATX_DONT_SYNC = 0x4000

export const RESOLVE_NO_MAGICLINKS = 0x02
export const RESOLVE_NO_SYMLINKS = 0x04
export const RESOLVE_BENEATH = 0x08

export const STATX_BASIC_STATS = 0x7ff
export const STATX_BTIME = 0x800
export const STATX_MNT_ID = 0x1000
export const STATX_MNT_ID_UNIQUE = 0x4000
export const STATX_ATTR_IMMUTABLE = 0x10
export const STATX_ATTR_APPEND = 0x20
export const STATX_ATTR_MOUNT_ROOT = 0x2000

export const OPEN_TREE_CLONE = 1
export const OPEN_TREE_CLOEXEC = O_CLOEXEC
export const MOVE_MOUNT_F_EMPTY_PATH = 0x4
export const MOVE_MOUNT_T_EMPTY_PATH = 0x40
export const MOVE_MOUNT_BENEATH = 0x200
export const FSOPEN_CLOEXEC = 1
export const FSMOUNT_CLOEXEC = 1
export const MS_PRIVATE = 1 << 18
export const MNT_FORCE = 1
export const MNT_DETACH = 2
export const UMOUNT_NOFOLLOW = 8

export const MOUNT_ATTR_IDMAP = 0x100000
/** Also waits for children that send no signal when they end. */
export const WALL = 0x40000000

export const LOCK_SH = 1
export const LOCK_EX = 2
export const LOCK_NB = 4

// include/uapi/linux/loop.h
export const LO_FLAGS_READ_ONLY = 1
export const LO_FLAGS_AUTOCLEAR = 4

// memfd_create(2)
export const MFD_CLOEXEC = 1
