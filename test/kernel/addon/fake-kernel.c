/*
 * Stands where the kernel would be, behind driver/kernel: looks at what reaches it by what the manual pages say, with sizes
 * and numbers of the system's own headers, and writes wherever the kernel would. What must not get here ends the process.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kernel.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#endif
#ifndef SYS_listmount
#define SYS_listmount 458
#endif
#ifndef SYS_listxattrat
#define SYS_listxattrat 465
#endif
/* struct fsuuid2 */
struct uuid {
  unsigned char length, uuid[16];
};
#define GET_UUID _IOR(0x15, 0, struct uuid)
/* fs/ext4/ext4.h, fs/xfs/libxfs/xfs_fs.h, include/uapi/linux/btrfs.h, with the sizes that the requests encode */
#define EXT4_GET_UUID _IOR('f', 44, char[8])
#define XFS_GEOMETRY _IOR('X', 100, char[112])
#define BTRFS_INFO _IOR(0x94, 31, char[1024])

static struct shared *shared;
static long number, given[6];
/* Of the arguments that were looked at: bits; the others must be 0. */
static unsigned seen, taken, wide;

static void wrong(const char *what, int argument) {
  fprintf(stderr, "system call %ld: argument %d: %s (0x%lx)\n", number, argument, what, given[argument]);
  abort();
}

static void take(int argument) {
  seen |= 1u << argument;
  taken |= 1u << argument;
}

static void is(int argument, long value) {
  seen |= 1u << argument;
  if (given[argument] != value) wrong("is not what it must be", argument);
}

static void whole(int argument) {
  take(argument);
  if (given[argument] < -2147483648L || given[argument] > 4294967295L) wrong("is not of 32 bits", argument);
}

static void room(int argument, unsigned long size, int is_written) {
  take(argument);
  const char *at = (const char *)given[argument];
  if (at < shared->arena || size > ARENA || at > shared->arena + ARENA - size) wrong("leaves the arena", argument);
  if (is_written) memset((char *)at, 0xa5, size);
}

static void sized(int argument, int length, int is_written) {
  take(length);
  room(argument, given[length], is_written);
}

static void name(int argument) {
  room(argument, 1, 0);
  const char *at = (const char *)given[argument];
  if (!memchr(at, 0, shared->arena + ARENA - at)) wrong("has no end in the arena", argument);
}

static void one_of_ioctls(void) {
  whole(0);
  seen |= 2;
  switch (given[1]) {
    case GET_UUID: return room(2, sizeof(struct uuid), 1);
    /* The header of 8 bytes and the UUID behind it. */
    case EXT4_GET_UUID: return room(2, 24, 1);
    case XFS_GEOMETRY: return room(2, 112, 1);
    case BTRFS_INFO: return room(2, 1024, 1);
    case LOOP_GET_STATUS64: return room(2, sizeof(struct loop_info64), 1);
    case LOOP_CONFIGURE: return room(2, sizeof(struct loop_config), 0);
    case LOOP_CTL_GET_FREE: return;
  }
  wrong("is no known request", 1);
}

static void one_of_fsconfig(void) {
  whole(0);
  seen |= 2;
  switch (given[1]) {
    case FSCONFIG_SET_STRING: name(3); /* fall through */
    case FSCONFIG_SET_FLAG: return name(2);
    case FSCONFIG_CMD_CREATE: return;
  }
  wrong("is no known command", 1);
}

static void look(void) {
  switch (number) {
    case SYS_openat: whole(0); name(1); whole(2); return;
    case SYS_openat2: whole(0); name(1); room(2, sizeof(struct open_how), 0); is(3, sizeof(struct open_how)); return;
    case SYS_sync: return;
    case SYS_close: case SYS_syncfs: whole(0); return;
    case SYS_read: case SYS_getdents64: whole(0); sized(1, 2, 1); return;
    case SYS_lseek: whole(0); take(1); wide = 1; whole(2); return;
    case SYS_fcntl: whole(0); is(1, F_DUPFD_CLOEXEC); whole(2); return;
    case SYS_flock: whole(0); whole(1); return;
    case SYS_pipe2: room(0, 2 * sizeof(int), 1); whole(1); return;
    case SYS_ppoll: room(0, 2 * sizeof(struct pollfd), 1); is(1, 2); return;
    case SYS_memfd_create: name(0); whole(1); return;
    case SYS_statx: whole(0); name(1); whole(2); whole(3); room(4, sizeof(struct statx), 1); return;
    case SYS_fstatfs: whole(0); room(1, sizeof(struct statfs), 1); return;
    case SYS_readlinkat: whole(0); name(1); sized(2, 3, 1); return;
    case SYS_mkdirat: case SYS_mknodat: case SYS_unlinkat: case SYS_open_tree: whole(0); name(1); whole(2); return;
    case SYS_fchownat: whole(0); name(1); whole(2); whole(3); whole(4); return;
    case SYS_fchmodat2: whole(0); name(1); whole(2); whole(3); return;
    case SYS_getxattr: name(0); name(1); sized(2, 3, 1); return;
    case SYS_setxattr: name(0); name(1); sized(2, 3, 0); whole(4); return;
    case SYS_listxattr: name(0); sized(1, 2, 1); return;
    case SYS_listxattrat: whole(0); name(1); whole(2); sized(3, 4, 1); return;
    case SYS_removexattr: name(0); name(1); return;
    case SYS_move_mount: whole(0); name(1); whole(2); name(3); whole(4); return;
    case SYS_fsopen: name(0); whole(1); return;
    case SYS_fsconfig: one_of_fsconfig(); return;
    case SYS_fsmount: whole(0); whole(1); whole(2); return;
    case SYS_mount_setattr: whole(0); name(1); whole(2); room(3, sizeof(struct mount_attr), 0); is(4, sizeof(struct mount_attr)); return;
    case SYS_umount2: name(0); whole(1); return;
    case SYS_ioctl: one_of_ioctls(); return;
    /* struct mnt_id_req, as of Linux 6.8. */
    case SYS_statmount: room(0, 24, 0); sized(1, 2, 1); return;
    case SYS_listmount: room(0, 24, 0); room(1, 8, 1); is(2, 1); return;
    case SYS_pidfd_open: whole(0); return;
    case SYS_pidfd_send_signal: whole(0); whole(1); return;
    case SYS_wait4: whole(0); room(1, sizeof(int), 1); whole(2); return;
    case SYS_getsockopt: whole(0); is(1, SOL_SOCKET); is(2, SO_PEERCRED); room(3, sizeof(struct ucred), 1); room(4, sizeof(socklen_t), 1); return;
    case SYS_prctl: is(0, PR_SET_PDEATHSIG); is(1, SIGKILL); return;
    case SYS_prlimit64: is(1, RLIMIT_CORE); room(2, sizeof(struct rlimit), 0); return;
  }
  wrong("is of a call that nobody has asked for", 0);
}

/* Told in the last row: the number, the arguments as they were passed (as offsets where they point into the arena), and which. */
static void tell(void) {
  struct row *row = &shared->rows[ROWS - 1];
  row->call = number;
  for (int i = 0; i < 6; i++) {
    const char *at = (const char *)given[i];
    int is_inside = at >= shared->arena && at < shared->arena + ARENA + 1;
    row->arguments[i] = is_inside ? (double)(at - shared->arena) : (double)given[i];
  }
  row->result = taken | wide << 6;
}

long fake_kernel(long call, long a, long b, long c, long d, long e, long f) {
  if (call == SYS_mmap || call == SYS_mprotect || call == SYS_munmap) {
    long at = syscall(call, a, b, c, d, e, f);
    if (call == SYS_mmap) shared = (struct shared *)at;
    return at;
  }
  number = call;
  memcpy(given, (long[]){a, b, c, d, e, f}, sizeof given);
  seen = taken = wide = 0;
  look();
  for (int i = 0; i < 6; i++)
    if (!(seen & 1u << i) && given[i] != 0) wrong("is one too many", i);
  tell();
  return 0;
}
