// Makes FIFOs, sockets and device nodes in the working directory: stdin has a letter (p, s, c) and a path for each, NUL at
// its end. A socket needs no listener to be an inode.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int main(void) {
  char *entry = NULL;
  size_t size = 0;
  while (getdelim(&entry, &size, 0, stdin) > 1) {
    mode_t type = entry[0] == 'p' ? S_IFIFO : entry[0] == 's' ? S_IFSOCK : S_IFCHR;
    if (mknod(entry + 1, type | 0600, makedev(1, 3)) != 0) {
      perror(entry + 1);
      return 1;
    }
  }
  free(entry);
  return 0;
}
