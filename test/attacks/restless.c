// A pod that never rests: changes a tree as fast as it can until it is killed.
//   nest DIRECTORY  makes directories in each other, ever deeper
//   sow DIRECTORY   makes directories in each other, each with files, and begins anew
//   fill DIRECTORY  makes files
// Prints a line when it begins.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 20, DEEP = 50, AHEAD = 20000, FAR = 40000 };

static int failed(const char *what) {
  perror(what);
  return 1;
}

static int touch(int at, const char *name) {
  int fd = openat(at, name, O_CREAT | O_EXCL | O_WRONLY, 0640);
  if (fd < 0) return -1;
  return close(fd);
}

static void begins(void) {
  puts("begins");
  fflush(stdout);
}

static int nest(void) {
  for (unsigned long depth = 0;; depth++) {
    // On a busy machine a walk could come to the end before there is more.
    if (depth == AHEAD) begins();
    // Far below any walk, it goes on more slowly: what it has made must be deleted again.
    if (depth > FAR) usleep(1000);
    if (mkdir("deeper", 0750) != 0 || chdir("deeper") != 0) return failed("deeper");
  }
}

static int sow(void) {
  char name[64], file[64];
  int top = open(".", O_RDONLY | O_DIRECTORY);
  for (unsigned long turn = 0;; turn++) {
    snprintf(name, sizeof name, "s%lu", turn);
    for (int level = 0; level < DEEP; level++) {
      if (mkdir(name, 0750) != 0 || chdir(name) != 0) return failed(name);
      for (int i = 0; i < FILES; i++) {
        snprintf(file, sizeof file, "f%d", i);
        if (touch(AT_FDCWD, file) != 0) return failed(file);
      }
    }
    if (fchdir(top) != 0) return failed("fchdir");
  }
}

static int fill(void) {
  char name[64];
  for (unsigned long turn = 0;; turn++) {
    snprintf(name, sizeof name, "f%d-%lu", getpid(), turn);
    if (touch(AT_FDCWD, name) != 0) return failed(name);
  }
}

int main(int argc, char **argv) {
  // However the test ends, this ends with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 3 || chdir(argv[2]) != 0) return 2;
  const char *mode = argv[1];
  if (strcmp(mode, "nest") == 0) return nest();
  begins();
  if (strcmp(mode, "sow") == 0) return sow();
  if (strcmp(mode, "fill") == 0) return fill();
  return 2;
}
