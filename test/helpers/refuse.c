/* refuse RULE... -- PROGRAM [ARGUMENT...]: runs the program on a kernel that lacks system calls.
   RULE: NUMBER[=ERRNO], or NUMBER:ARGUMENT:BITS=ERRNO, where only a call with all of these bits set is refused. */
#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST 128
static struct sock_filter filter[MOST];
static unsigned short length;

static void add(struct sock_filter line) {
  if (length == MOST) errx(2, "too many rules");
  filter[length++] = line;
}

static void refuse(const char *rule) {
  unsigned number, argument = 0, bits = 0, code = ENOSYS;
  const char *equals = strchr(rule, '=');
  if (sscanf(rule, "%u:%u:%x", &number, &argument, &bits) < 1 || (equals && sscanf(equals, "=%u", &code) != 1))
    errx(2, "not a rule: %s", rule);
  struct sock_filter load = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  struct sock_filter is = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, bits ? 4 : 1);
  /* The low half: both architectures are little-endian. */
  struct sock_filter look = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * argument);
  struct sock_filter mask = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits);
  struct sock_filter has = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1);
  struct sock_filter answer = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code);
  add(load);
  add(is);
  if (bits) {
    add(look);
    add(mask);
    add(has);
  }
  add(answer);
}

int main(int argc, char **argv) {
  int at = 1;
  for (; at < argc && strcmp(argv[at], "--") != 0; at++) refuse(argv[at]);
  if (at + 1 >= argc) errx(2, "usage: refuse RULE... -- PROGRAM [ARGUMENT...]");
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  add(allow);
  struct sock_fprog program = {length, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) err(1, "seccomp");
  execvp(argv[at + 1], argv + at + 1);
  err(1, "%s", argv[at + 1]);
}
