/* walk DIRECTORY GROUP: gives the group and kubelet's permission bits to a tree, by one thread and directory
   descriptors, changing only what differs. The least such a walk can cost; no journal, no thought for set-id bits. */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gid_t group;

static void give(int parent, const char *name, const struct stat *st) {
  mode_t mode = st->st_mode & 07777, want = mode | (S_ISDIR(st->st_mode) ? 02770 : 0660);
  if (st->st_gid != group && fchownat(parent, name, -1, group, AT_SYMLINK_NOFOLLOW)) err(1, "chown %s", name);
  if (want != mode && fchmodat(parent, name, want, 0)) err(1, "chmod %s", name);
}

static void walk(int parent, const char *name, const struct stat *st) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  if (!directory) err(1, "open %s", name);
  for (struct dirent *entry; (entry = readdir(directory));) {
    struct stat in;
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (fstatat(fd, entry->d_name, &in, AT_SYMLINK_NOFOLLOW)) err(1, "stat %s", entry->d_name);
    if (S_ISDIR(in.st_mode)) walk(fd, entry->d_name, &in);
    else if (!S_ISLNK(in.st_mode)) give(fd, entry->d_name, &in);
  }
  closedir(directory);
  give(parent, name, st);
}

int main(int argc, char **argv) {
  struct stat root;
  if (argc != 3) errx(2, "walk DIRECTORY GROUP");
  group = (gid_t)strtoul(argv[2], NULL, 10);
  if (lstat(argv[1], &root)) err(1, "stat %s", argv[1]);
  walk(AT_FDCWD, argv[1], &root);
  return 0;
}
