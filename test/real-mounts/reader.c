// Uses a mount directory by its full path as fast as it can, until SIGTERM: lists it, and reads the number in a file there.
//   reader DIRECTORY NAME DEVICE INODE
// DEVICE and INODE are those of the directory under the mount, which nobody may ever see. A number lower than one that was
// read before is a fault too: the old content after the new. A source that was deleted is empty and no fault.
// Prints "ready", each kind of fault when it is first seen, and at the end how many rounds there were.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;
static const char *directory;
static const char *name;
static char file[4096];
static dev_t bare_device;
static ino_t bare_inode;
static long newest = -1;

static void stop(int signal) {
  (void)signal;
  stopped = 1;
}

static void fault(const char *what) {
  static char seen[16][128];
  static int kinds;
  char text[128];
  snprintf(text, sizeof text, "%s", what);
  for (int i = 0; i < kinds; i++)
    if (strcmp(seen[i], text) == 0) return;
  if (kinds < 16) strcpy(seen[kinds++], text);
  printf("%s\n", text);
}

static void failed(const char *call) {
  char text[128];
  snprintf(text, sizeof text, "%s: %s", call, strerror(errno));
  fault(text);
}

// What is being deleted is empty for a moment before it is gone.
static int is_deleted(int handle) {
  struct stat now;
  for (int pause = 0; pause < 200; pause++) {
    if (fstat(handle, &now) != 0 || now.st_nlink == 0) return 1;
    usleep(1000);
  }
  return 0;
}

static void list(int handle) {
  DIR *listed = fdopendir(dup(handle));
  if (!listed) return failed("fdopendir");
  int found = 0;
  errno = 0;
  for (struct dirent *entry; (entry = readdir(listed));) found |= strcmp(entry->d_name, name) == 0;
  if (errno) failed("readdir");
  if (!found && !is_deleted(handle)) fault("an empty directory");
  closedir(listed);
}

static void read_number(int handle) {
  int fd = open(file, O_RDONLY);
  if (fd < 0) {
    if (!is_deleted(handle)) failed("open of the file");
    return;
  }
  char text[32] = "";
  ssize_t length = read(fd, text, sizeof text - 1);
  if (length < 0) failed("read");
  close(fd);
  char *end;
  long number = strtol(text, &end, 10);
  if (length > 0 && *end != '\n') fault("other content");
  if (length == 0) fault("no content");
  if (number < newest) fault("the old content after the new");
  newest = number;
}

static void look(void) {
  int handle = open(directory, O_RDONLY | O_DIRECTORY);
  if (handle < 0) return failed("open of the directory");
  struct stat stat;
  if (fstat(handle, &stat) != 0) failed("fstat");
  if (stat.st_dev == bare_device && stat.st_ino == bare_inode) fault("the directory without a mount");
  list(handle);
  read_number(handle);
  close(handle);
}

int main(int argc, char **argv) {
  // However the test ends, this ends with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGTERM, stop);
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc != 5) return 2;
  directory = argv[1];
  name = argv[2];
  bare_device = strtoull(argv[3], NULL, 10);
  bare_inode = strtoull(argv[4], NULL, 10);
  snprintf(file, sizeof file, "%s/%s", directory, name);
  unsigned long rounds = 0;
  for (; !stopped; rounds++) {
    look();
    if (rounds == 0) printf("ready\n");
  }
  printf("%lu\n", rounds);
  return 0;
}
