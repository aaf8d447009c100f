/* Every system call that modekeep can make. Numbers without an architecture are the same on both. */
#include "kernel.h"

#if defined(__x86_64__)
#include "x64.h"
#elif defined(__aarch64__)
#include "arm64.h"
#endif

enum {
  SYS_pidfd_send_signal = 424, SYS_open_tree = 428, SYS_move_mount = 429, SYS_fsopen = 430, SYS_fsconfig = 431, SYS_fsmount = 432,
  SYS_openat2 = 437, SYS_mount_setattr = 442, SYS_fchmodat2 = 452, SYS_statmount = 457, SYS_listmount = 458,
  SYS_listxattrat = 465,
};

/* include/uapi/linux/{fcntl,fs,loop,mount}.h, asm-generic/{resource,socket}.h */
enum {
  F_DUPFD_CLOEXEC_ = 1030, FSCONFIG_SET_FLAG = 0, FSCONFIG_SET_STRING = 1, FSCONFIG_CMD_CREATE = 6,
  LOOP_GET_STATUS64 = 0x4c05, LOOP_CONFIGURE = 0x4c0a, LOOP_CTL_GET_FREE = 0x4c82, RLIMIT_CORE = 4,
  SOL_SOCKET = 1, SO_PEERCRED = 17, PR_SET_PDEATHSIG_ = 1, SIGKILL_ = 9,
};
#define FS_IOC_GETFSUUID 0x80111500u
/* fs/ext4/ext4.h, fs/xfs/libxfs/xfs_fs.h, include/uapi/linux/btrfs.h */
#define EXT4_IOC_GETFSUUID 0x8008662cu
#define XFS_IOC_FSGEOMETRY_V1 0x80705864u
#define BTRFS_IOC_FS_INFO 0x8400941fu

#define INT {INTEGER, 0}
#define OFFSET {WIDE, 0}
#define STRING {NAME, 0}
#define SIZE {LENGTH, 0}
#define NONE {FIXED, 0}
#define CONST(value) {FIXED, value}
#define STRUCT(bytes) {BUFFER, bytes}
#define BYTES(argument) {SIZED, argument}

static const struct call calls[] = {
    {"openat", SYS_openat, {INT, STRING, INT}},
    /* struct open_how */
    {"openat2", SYS_openat2, {INT, STRING, STRUCT(24), CONST(24)}},
    {"close", SYS_close, {INT}},
    {"read", SYS_read, {INT, BYTES(2), SIZE}},
    {"lseek", SYS_lseek, {INT, OFFSET, INT}},
    {"dup", SYS_fcntl, {INT, CONST(F_DUPFD_CLOEXEC_), INT}},
    {"sync", SYS_sync, {NONE}},
    {"syncfs", SYS_syncfs, {INT}},
    {"flock", SYS_flock, {INT, INT}},
    {"pipe2", SYS_pipe2, {STRUCT(8), INT}},
    /* Two of struct pollfd, without a deadline or a signal mask. */
    {"ppoll", SYS_ppoll, {STRUCT(16), CONST(2), NONE, NONE, NONE}},
    {"memfd_create", SYS_memfd_create, {STRING, INT}},

    {"statx", SYS_statx, {INT, STRING, INT, INT, STRUCT(256)}},
    {"fstatfs", SYS_fstatfs, {INT, STRUCT(120)}},
    {"readlinkat", SYS_readlinkat, {INT, STRING, BYTES(3), SIZE}},
    {"getdents64", SYS_getdents64, {INT, BYTES(2), SIZE}},
    {"mkdirat", SYS_mkdirat, {INT, STRING, INT}},
    {"mknodat", SYS_mknodat, {INT, STRING, INT, NONE}},
    {"unlinkat", SYS_unlinkat, {INT, STRING, INT}},
    {"fchownat", SYS_fchownat, {INT, STRING, INT, INT, INT}},
    {"fchmodat2", SYS_fchmodat2, {INT, STRING, INT, INT}},
    {"getxattr", SYS_getxattr, {STRING, STRING, BYTES(3), SIZE}},
    {"setxattr", SYS_setxattr, {STRING, STRING, BYTES(3), SIZE, INT}},
    {"listxattr", SYS_listxattr, {STRING, BYTES(2), SIZE}},
    {"listxattrat", SYS_listxattrat, {INT, STRING, INT, BYTES(4), SIZE}},
    {"removexattr", SYS_removexattr, {STRING, STRING}},

    {"open_tree", SYS_open_tree, {INT, STRING, INT}},
    {"move_mount", SYS_move_mount, {INT, STRING, INT, STRING, INT}},
    {"fsopen", SYS_fsopen, {STRING, INT}},
    {"fsconfig_flag", SYS_fsconfig, {INT, CONST(FSCONFIG_SET_FLAG), STRING, NONE, NONE}},
    {"fsconfig_string", SYS_fsconfig, {INT, CONST(FSCONFIG_SET_STRING), STRING, STRING, NONE}},
    {"fsconfig_create", SYS_fsconfig, {INT, CONST(FSCONFIG_CMD_CREATE), NONE, NONE, NONE}},
    {"fsmount", SYS_fsmount, {INT, INT, INT}},
    /* struct mount_attr */
    {"mount_setattr", SYS_mount_setattr, {INT, STRING, INT, STRUCT(32), CONST(32)}},
    {"umount2", SYS_umount2, {STRING, INT}},

    /* struct fsuuid2, loop_info64, loop_config */
    {"fs_uuid", SYS_ioctl, {INT, CONST(FS_IOC_GETFSUUID), STRUCT(17)}},
    /* struct fsuuid with room for 16 bytes, xfs_fsop_geom_v1, btrfs_ioctl_fs_info_args */
    {"ext4_uuid", SYS_ioctl, {INT, CONST(EXT4_IOC_GETFSUUID), STRUCT(24)}},
    {"xfs_geometry", SYS_ioctl, {INT, CONST(XFS_IOC_FSGEOMETRY_V1), STRUCT(112)}},
    {"btrfs_info", SYS_ioctl, {INT, CONST(BTRFS_IOC_FS_INFO), STRUCT(1024)}},
    {"loop_status", SYS_ioctl, {INT, CONST(LOOP_GET_STATUS64), STRUCT(232)}},
    {"loop_configure", SYS_ioctl, {INT, CONST(LOOP_CONFIGURE), STRUCT(304)}},
    {"loop_free", SYS_ioctl, {INT, CONST(LOOP_CTL_GET_FREE), NONE}},

    /* struct mnt_id_req */
    {"statmount", SYS_statmount, {STRUCT(24), BYTES(2), SIZE, NONE}},
    /* Of one, the first. */
    {"listmount", SYS_listmount, {STRUCT(24), STRUCT(8), CONST(1), NONE}},
    {"pidfd_open", SYS_pidfd_open, {INT, NONE}},
    {"pidfd_send_signal", SYS_pidfd_send_signal, {INT, INT, NONE, NONE}},
    {"wait4", SYS_wait4, {INT, STRUCT(4), INT, NONE}},
    /* struct rlimit */
    {"limit_core", SYS_prlimit64, {NONE, CONST(RLIMIT_CORE), STRUCT(16), NONE}},
    {"die_with_parent", SYS_prctl, {CONST(PR_SET_PDEATHSIG_), CONST(SIGKILL_), NONE, NONE, NONE}},
    /* struct ucred, which the kernel fills no further, and how long it is */
    {"peer_credentials", SYS_getsockopt, {INT, CONST(SOL_SOCKET), CONST(SO_PEERCRED), STRUCT(12), STRUCT(4)}},
};

enum { CALLS = sizeof calls / sizeof *calls };
