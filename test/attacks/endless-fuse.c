// A FUSE server whose one directory has no end.
//   endless-fuse circle DIRECTORY   lists the same few files, over and over
//   endless-fuse mirror DIRECTORY   has in each directory one more, with the number of the one it is in
//   endless-fuse well DIRECTORY     has in each directory one more, with a number of its own
// Every time it tells is long ago. Prints a line when it is mounted, and serves until it is killed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT = 1, FILES = 8, FIRST = 2, BELOW = 1000, LONG = 1000000 };

static char request[1 << 17], reply[1 << 17];
static int fuse;
static int isCircle, isMirror;

static struct fuse_in_header *asked(void) {
  return (struct fuse_in_header *)request;
}

static void answer(int error, const void *body, size_t size) {
  struct fuse_out_header *header = (struct fuse_out_header *)reply;
  *header = (struct fuse_out_header){.len = sizeof *header + size, .error = -error, .unique = asked()->unique};
  if (size > 0) memcpy(reply + sizeof *header, body, size);
  // The kernel refuses the answer to who was killed meanwhile.
  if (write(fuse, reply, header->len) < 0 && errno != ENOENT) _exit(1);
}

static int isDirectory(uint64_t node) {
  return node == ROOT || node >= BELOW;
}

static struct fuse_attr attributes(uint64_t node) {
  return (struct fuse_attr){
      .ino = isMirror && isDirectory(node) ? ROOT : node,
      .mode = isDirectory(node) ? S_IFDIR | 0755 : S_IFREG | 0644,
      .nlink = 1,
      .atime = LONG,
      .mtime = LONG,
      .ctime = LONG,
      .blksize = 4096,
  };
}

static void lookup(void) {
  const char *name = request + sizeof(struct fuse_in_header);
  uint64_t parent = asked()->nodeid;
  uint64_t node = isCircle ? FIRST + (uint64_t)(name[1] - '0') : parent < BELOW ? BELOW : parent + 1;
  struct fuse_entry_out out = {.nodeid = node, .attr = attributes(node), .entry_valid = 1, .attr_valid = 1};
  answer(0, &out, sizeof out);
}

static size_t put(char *at, uint64_t node, uint64_t next, const char *name) {
  struct fuse_dirent *entry = (struct fuse_dirent *)at;
  *entry = (struct fuse_dirent){.ino = node, .off = next, .namelen = strlen(name), .type = isDirectory(node) ? 4 : 8};
  memcpy(entry->name, name, entry->namelen);
  return FUSE_DIRENT_SIZE(entry);
}

static void list(void) {
  const struct fuse_read_in *in = (struct fuse_read_in *)(request + sizeof(struct fuse_in_header));
  char entries[4096] = {0};
  size_t size = 0;
  if (isCircle) {
    for (uint64_t i = 0; i < FILES; i++) {
      char name[] = {'f', (char)('0' + i), 0};
      // After the last one comes the first.
      size += put(entries + size, FIRST + i, i + 1 == FILES ? FILES : i + 1, name);
    }
  } else if (in->offset == 0) {
    size = put(entries, BELOW, 1, "deeper");
  }
  answer(0, entries, size);
}

static void serve(void) {
  switch (asked()->opcode) {
    case FUSE_INIT: {
      struct fuse_init_out out = {.major = 7, .minor = 31, .max_write = 4096};
      return answer(0, &out, sizeof out);
    }
    case FUSE_GETATTR: {
      struct fuse_attr_out out = {.attr_valid = 1, .attr = attributes(asked()->nodeid)};
      return answer(0, &out, sizeof out);
    }
    case FUSE_LOOKUP:
      return lookup();
    case FUSE_OPENDIR: {
      struct fuse_open_out out = {0};
      return answer(0, &out, sizeof out);
    }
    case FUSE_READDIR:
      return list();
    case FUSE_SETATTR: {
      struct fuse_attr_out out = {.attr = attributes(asked()->nodeid)};
      return answer(0, &out, sizeof out);
    }
    case FUSE_STATFS: {
      struct fuse_statfs_out out = {0};
      return answer(0, &out, sizeof out);
    }
    case FUSE_RELEASEDIR:
      return answer(0, NULL, 0);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;
    default:
      return answer(ENOSYS, NULL, 0);
  }
}

int main(int argc, char **argv) {
  // However the test ends, this ends with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 3) return 2;
  isCircle = strcmp(argv[1], "circle") == 0;
  isMirror = strcmp(argv[1], "mirror") == 0;
  fuse = open("/dev/fuse", O_RDWR);
  char options[128];
  snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fuse);
  if (fuse < 0 || mount("endless", argv[2], "fuse", MS_NOSUID | MS_NODEV, options) != 0) {
    perror("fuse");
    return 1;
  }
  puts("begins");
  fflush(stdout);
  while (read(fuse, request, sizeof request) > 0) serve();
  return 0;
}
