// The other side of a race: changes a tree as fast as it can until SIGTERM, then leaves it as it was.
//   exchange A B [C D ...]   exchanges A with B, C with D, ... and back
//   move A B [C D ...]       renames A to B, C to D, ... and back
//   churn DIRECTORY          makes and deletes files and directories in DIRECTORY
// Prints a line when it begins, SIGTERM being minded from then on, and at the end how many rounds there were; status 1 if a
// call failed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int signal) {
  (void)signal;
  stopped = 1;
}

static int failed(const char *what) {
  perror(what);
  return 1;
}

static int swap(char **pairs, int count, int back, unsigned flags) {
  for (int i = 0; i + 1 < count; i += 2) {
    const char *from = pairs[i + back], *to = pairs[i + 1 - back];
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, flags) != 0) return failed(from);
  }
  return 0;
}

enum { NAMES = 32 };

static int churn(const char *directory) {
  char path[4096], inner[4200];
  for (int i = 0; i < NAMES; i++) {
    snprintf(path, sizeof path, "%s/new%d", directory, i);
    if (i % 4 == 0) {
      snprintf(inner, sizeof inner, "%s/inner", path);
      if (mkdir(path, 0755) != 0 || mkdir(inner, 0700) != 0) return failed(path);
      continue;
    }
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0640);
    if (fd < 0) return failed(path);
    close(fd);
  }
  for (int i = 0; i < NAMES; i++) {
    snprintf(path, sizeof path, "%s/new%d", directory, i);
    snprintf(inner, sizeof inner, "%s/inner", path);
    if (i % 4 == 0 ? rmdir(inner) != 0 || rmdir(path) != 0 : unlink(path) != 0) return failed(path);
  }
  return 0;
}

int main(int argc, char **argv) {
  // However the test ends, this ends with it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGTERM, stop);
  // On a machine of two cores the walk must get its turns too.
  if (nice(5) < 0) return failed("nice");
  if (argc < 3) return 2;
  const char *mode = argv[1];
  unsigned flags = strcmp(mode, "exchange") == 0 ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  unsigned long rounds = 0;
  puts("begins");
  fflush(stdout);
  for (; !stopped; rounds++) {
    if (strcmp(mode, "churn") == 0 ? churn(argv[2])
                                   : swap(argv + 2, argc - 2, 0, flags) || swap(argv + 2, argc - 2, 1, flags))
      return 1;
  }
  printf("%lu\n", rounds);
  return 0;
}
