#include "loader.h"
#include "sys.h"

/*
 * On a node where "modekeep heal --watch --answer-calls" runs, its worker answers kubelet's call, and Node need not start. The worker is
 * asked only if it is this executable, run by root, in this mount namespace and with this root. Whatever prevents that is no
 * fault: this process then makes the call itself.
 */

#define DEFAULT_SOCKET "/run/modekeep/flexvolume.sock"
#define SOCKET_VARIABLE "MODEKEEP_SOCKET="
#define OWN_VARIABLES "MODEKEEP_"
#define SECRET_KEY "kubernetes.io/secret/"

/* A worker that is free answers at once; a busy one closes the connection. */
#define ACCEPT_MS 100
#define MAX_REQUEST_BYTES 65536

/* struct sockaddr_un, ucred */
struct address {
  unsigned short family;
  char path[108];
};

struct credentials {
  int pid;
  unsigned uid, gid;
};

/* The begin of struct stat, which is the same on both machines. */
struct file {
  word device, inode, rest[30];
};

static int contains(const char *text, const char *part) {
  for (; *text; text++)
    if (begins_with(text, part)) return 1;
  return 0;
}

static int is_kubelets_call(char **argv, word count) {
  if (count == 2) return equals(argv[1], "init");
  if (count == 3) return equals(argv[1], "unmount");
  /* Secrets stay in the process that kubelet started. */
  return count == 4 && equals(argv[1], "mount") && !contains(argv[3], SECRET_KEY);
}

static const char *socket_path(char **envp) {
  for (; *envp; envp++)
    if (begins_with(*envp, SOCKET_VARIABLE)) return *envp + length(SOCKET_VARIABLE);
  return DEFAULT_SOCKET;
}

static long connect_to(const char *path) {
  struct address address;
  if (!*path || length(path) >= sizeof address.path) return -1;
  zero((char *)&address, sizeof address);
  address.family = AF_UNIX;
  append(address.path, path);
  long fd = CALL(socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, 0, 0, 0);
  if (failed(fd)) return fd;
  long error = CALL(connect, fd, &address, sizeof address, 0, 0, 0);
  if (!failed(error)) return fd;
  close(fd);
  return error;
}

/* Whether both processes have the same file or namespace at a name of /proc/PID. */
static int has_same(word pid, const char *name) {
  char path[64];
  struct file own, other;
  append(append(path, "/proc/self/"), name);
  if (failed(CALL(newfstatat, AT_FDCWD, path, &own, 0, 0, 0))) return 0;
  append(append(append_number(append(path, "/proc/"), pid), "/"), name);
  if (failed(CALL(newfstatat, AT_FDCWD, path, &other, 0, 0, 0))) return 0;
  return own.device == other.device && own.inode == other.inode;
}

/*
 * Returns the number of the process that listens, 0 where it is another program. Its handle shows that it still exists after the
 * comparison, so that all that was compared is of one process.
 */
static long find_same_program(int fd) {
  struct credentials peer;
  unsigned size = sizeof peer;
  if (failed(CALL(getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &size, 0)) || peer.uid != 0 || peer.pid <= 0) return 0;
  int process = -1;
  size = sizeof process;
  if (failed(CALL(getsockopt, fd, SOL_SOCKET, SO_PEERPIDFD, &process, &size, 0)))
    process = CALL(pidfd_open, peer.pid, 0, 0, 0, 0, 0);
  if (process < 0) return 0;
  int is_same = has_same(peer.pid, "ns/mnt") && has_same(peer.pid, "ns/user") && has_same(peer.pid, "root") &&
                has_same(peer.pid, "exe");
  struct poll ended = {process, POLLIN, 0};
  struct time now = {0, 0};
  is_same = is_same && CALL(ppoll, &ended, 1, &now, 0, 0, 0) == 0;
  close(process);
  return is_same ? peer.pid : 0;
}

/* The umask, the number of arguments, the arguments without the program's name, modekeep's variables; each ends with a zero. */
static long write_request(char *request, char **argv, word count, char **envp) {
  long mask = CALL(umask, 0, 0, 0, 0, 0, 0);
  CALL(umask, mask, 0, 0, 0, 0, 0);
  char *to = append_number(request, mask) + 1;
  to = append_number(to, count - 1) + 1;
  char **argument = argv + 1;
  for (int is_variable = 0; is_variable < 2; is_variable++, argument = envp)
    for (; *argument; argument++) {
      if (is_variable && !begins_with(*argument, OWN_VARIABLES)) continue;
      word size = length(*argument) + 1;
      if (to + size > request + MAX_REQUEST_BYTES) return 0;
      copy(to, *argument, size);
      to += size;
    }
  return to - request;
}

static int has_sent_request(int fd, char **argv, word count, char **envp) {
  long request = mmap(0, MAX_REQUEST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (failed(request)) return 0;
  long size = write_request((char *)request, argv, count, envp);
  int is_sent = size > 0 && CALL(sendto, fd, request, size, MSG_NOSIGNAL, 0, 0) == size;
  munmap(request, MAX_REQUEST_BYTES);
  return is_sent && !failed(CALL(shutdown, fd, SHUT_WR, 0, 0, 0, 0));
}

/*
 * Ends this process with the worker's reply. Returns where there is none: with the number of a worker that accepted the call
 * and fell silent, or 0. What that worker still does is guarded by its locks.
 */
struct unanswered ask_resident(char **argv, word count, char **envp) {
  struct unanswered unanswered = {0, 0};
  if (!is_kubelets_call(argv, count)) return unanswered;
  long fd = connect_to(socket_path(envp));
  if (failed(fd)) return unanswered;
  long pid = find_same_program(fd);
  if (pid && has_sent_request(fd, argv, count, envp)) {
    unanswered.silent_ms = relay_resident(fd, ACCEPT_MS);
    if (unanswered.silent_ms) unanswered.pid = pid;
  }
  close(fd);
  return unanswered;
}
