/* Mounts at argv[1] a tmpfs that belongs to a user namespace whose ids 0.. are 100000.. here, as a container's root can
   make one. The process ends; the mount stays. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int ready[2];
static volatile long mount_fd = -1;

static int make(void *unused) {
  char byte;
  (void)unused;
  if (read(ready[0], &byte, 1) != 1) return 1;
  if (setgid(0) || setuid(0)) return 2;
  long context = syscall(SYS_fsopen, "tmpfs", 0);
  if (context < 0 || syscall(SYS_fsconfig, context, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0)) return 3;
  mount_fd = syscall(SYS_fsmount, context, 0, 0);
  return mount_fd < 0 ? 4 : 0;
}

static void write_map(pid_t pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  int fd = open(path, O_WRONLY);
  if (fd < 0 || write(fd, "0 100000 65536\n", 15) != 15) err(1, "%s", path);
  close(fd);
}

int main(int argc, char **argv) {
  const size_t size = 1 << 16;
  char *stack = malloc(size);
  int status;
  if (argc != 2 || !stack || pipe(ready)) err(1, "usage: foreign-file-system DIRECTORY");
  /* CLONE_FILES: the descriptor that the child gets is this process's too. */
  pid_t pid = clone(make, stack + size, CLONE_NEWUSER | CLONE_NEWNS | CLONE_FILES | CLONE_VM | SIGCHLD, NULL);
  if (pid < 0) err(1, "clone");
  write_map(pid, "uid_map");
  write_map(pid, "gid_map");
  if (write(ready[1], "", 1) != 1 || waitpid(pid, &status, 0) != pid) err(1, "the child");
  if (status != 0) errx(1, "the child failed: %x", status);
  if (syscall(SYS_move_mount, (int)mount_fd, "", AT_FDCWD, argv[1], 4 /* MOVE_MOUNT_F_EMPTY_PATH */)) err(1, "move_mount");
  return 0;
}
