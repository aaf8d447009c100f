#pragma once
#include "loader.h"

#define CALL(name, a, b, c, d, e, f) \
  sys(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

enum {
  AT_FDCWD = -100, O_RDONLY = 0, O_CLOEXEC = 02000000, R_OK = 4, F_DUPFD_CLOEXEC = 1030,
  PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4, MAP_PRIVATE = 2, MAP_FIXED = 16, MAP_ANONYMOUS = 32,
  MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, MFD_NOEXEC_SEAL = 8, EINVAL = 22, EAGAIN = 11, PR_SET_DUMPABLE = 4, WALL = 0x40000000,
  RLIMIT_CPU = 0, RLIMIT_FSIZE = 1, RLIMIT_DATA = 2, RLIMIT_STACK = 3, RLIMIT_NPROC = 6, RLIMIT_NOFILE = 7, RLIMIT_AS = 9,
  POLLIN = 1, WNOHANG = 1, SIGKILL = 9, SIGPIPE = 13, SIG_IGN = 1, SIGCHLD = 17, EINTR = 4, PR_SET_PDEATHSIG = 1,
  AF_UNIX = 1, SOCK_STREAM = 1, SOCK_NONBLOCK = 04000, SOCK_CLOEXEC = 02000000, SOL_SOCKET = 1, SO_PEERCRED = 17,
  SO_PEERPIDFD = 77, SHUT_WR = 1, MSG_NOSIGNAL = 0x4000,
  F_ADD_SEALS = 1033, F_SEAL_SEAL = 1, F_SEAL_SHRINK = 2, F_SEAL_GROW = 4, F_SEAL_WRITE = 8,
};

/* struct sigaction, struct timespec, struct pollfd */
struct signal_action {
  word handler, flags, restorer, mask;
};

struct time {
  long seconds, nanoseconds;
};

struct poll {
  int descriptor;
  short wanted, found;
};

static inline long write(int fd, const void *bytes, word size) { return CALL(write, fd, bytes, size, 0, 0, 0); }
static inline long close(int fd) { return CALL(close, fd, 0, 0, 0, 0, 0); }
static inline long open(const char *path) { return CALL(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0); }
static inline long pread(int fd, void *to, word size, word at) { return CALL(pread64, fd, to, size, at, 0, 0); }
static inline long munmap(word at, word size) { return CALL(munmap, at, size, 0, 0, 0, 0); }
static inline long mmap(word at, word size, int protection, int flags, int fd, word offset) {
  return CALL(mmap, at, size, protection, flags, fd, offset);
}

static inline int failed(long result) { return result < 0 && result > -4096; }

static inline word length(const char *text) {
  word n = 0;
  while (text[n]) n++;
  return n;
}

static inline int equals(const char *text, const char *other) {
  while (*text && *text == *other) text++, other++;
  return *text == *other;
}

static inline int begins_with(const char *text, const char *prefix) {
  while (*prefix && *prefix == *text) prefix++, text++;
  return !*prefix;
}

static inline void copy(char *to, const char *from, word size) {
  while (size--) *to++ = *from++;
}

static inline void zero(char *at, word size) {
  while (size--) *at++ = 0;
}

static inline char *append(char *to, const char *text) {
  while (*text) *to++ = *text++;
  *to = 0;
  return to;
}

static inline char *append_number(char *to, word number) {
  char digits[20];
  int n = 0;
  do digits[n++] = '0' + number % 10;
  while (number /= 10);
  while (n) *to++ = digits[--n];
  *to = 0;
  return to;
}
