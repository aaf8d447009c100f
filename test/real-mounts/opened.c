// Says which of the named inodes are opened: prints "ready", then each name at every open, until SIGTERM.
// O_PATH opens nothing and is not told by the kernel.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int signal) {
  (void)signal;
  stopped = 1;
}

int main(int argc, char **argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, NULL);
  int queue = inotify_init1(IN_NONBLOCK);
  for (int i = 1; i < argc; i++) {
    // Descriptors are counted from 1.
    if (inotify_add_watch(queue, argv[i], IN_OPEN | IN_DONT_FOLLOW) != i) {
      perror(argv[i]);
      return 1;
    }
  }
  printf("ready\n");
  fflush(stdout);
  _Alignas(struct inotify_event) char buffer[4096];
  for (;;) {
    int last = stopped;
    ssize_t size = read(queue, buffer, sizeof buffer);
    if (size < 0 && errno == EAGAIN && last) return 0;
    for (char *at = buffer; size > 0 && at < buffer + size;) {
      struct inotify_event *event = (struct inotify_event *)at;
      if (event->mask & IN_OPEN) printf("%s%s%s\n", argv[event->wd], event->len ? "/" : "", event->len ? event->name : "");
      at += sizeof *event + event->len;
    }
    struct pollfd one = {.fd = queue, .events = POLLIN};
    if (size <= 0 && !stopped) poll(&one, 1, 100);
  }
}
