/* measured COMMAND [ARGUMENT...]: runs it and, if it succeeds, adds a line to its output: wall, user and system time in
   nanoseconds, with all of its threads and the children it waited for, and its peak of resident memory in KiB. */
#define _GNU_SOURCE
#include <err.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct timespec from, to;
  struct rusage used;
  int status;
  if (argc < 2) errx(2, "measured COMMAND [ARGUMENT...]");
  clock_gettime(CLOCK_MONOTONIC, &from);
  pid_t child = fork();
  if (child == 0) {
    execvp(argv[1], argv + 1);
    err(127, "%s", argv[1]);
  }
  if (child < 0 || wait4(child, &status, 0, &used) < 0) err(1, "%s", argv[1]);
  clock_gettime(CLOCK_MONOTONIC, &to);
  if (status) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  printf("\n%lld %lld %lld %ld\n", (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec,
         (used.ru_utime.tv_sec * 1000000LL + used.ru_utime.tv_usec) * 1000,
         (used.ru_stime.tv_sec * 1000000LL + used.ru_stime.tv_usec) * 1000, used.ru_maxrss);
  return 0;
}
