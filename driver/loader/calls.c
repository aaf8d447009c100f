#include "loader.h"
#include "sys.h"

#define EPERM_ERROR -1
#define EACCES_ERROR -13
#define ENOSYS_ERROR -38
#define FUTEX_WAKE_PRIVATE 129

/* Numbers that the loader only tries; the addon, which includes its headers, has names of its own for some of them. */
#if defined(__x86_64__)
enum {
  TRY_clone3 = 435, TRY_epoll_create1 = 291, TRY_epoll_pwait = 281, TRY_eventfd2 = 290, TRY_futex = 202,
  TRY_getrandom = 318, TRY_pipe2 = 293, TRY_read = 0, TRY_fstat = 5, TRY_newfstatat = 262, TRY_madvise = 28,
  TRY_rt_sigaction = 13, TRY_rt_sigprocmask = 14, TRY_uname = 63, TRY_io_uring_setup = 425,
  TRY_io_uring_enter = 426,
};
#elif defined(__aarch64__)
enum {
  TRY_clone3 = 435, TRY_epoll_create1 = 20, TRY_epoll_pwait = 22, TRY_eventfd2 = 19, TRY_futex = 98,
  TRY_getrandom = 278, TRY_pipe2 = 59, TRY_read = 63, TRY_fstat = 80, TRY_newfstatat = 79, TRY_madvise = 233,
  TRY_rt_sigaction = 134, TRY_rt_sigprocmask = 135, TRY_uname = 160, TRY_io_uring_setup = 425,
  TRY_io_uring_enter = 426,
};
#endif

/* A system call without which Node aborts, and arguments with which it changes nothing. */
struct call {
  long number, arguments[3];
  char name[16];
  /* The C library does without it where the kernel does not have it. */
  long has_fallback;
};

/*
 * The kernel itself answers each of these with success, EBADF, EFAULT or EINVAL. A filter of seccomp, which decides by the number,
 * answers EPERM, and older container runtimes do so for every call that they do not know.
 */
static const struct call calls[] = {
    {TRY_clone3, {0, 0, 0}, "clone3", 1},
    {TRY_epoll_create1, {-1, 0, 0}, "epoll_create1", 0},
    {TRY_epoll_pwait, {-1, 0, 0}, "epoll_pwait", 0},
    {TRY_eventfd2, {0, -1, 0}, "eventfd2", 0},
    {TRY_futex, {0, FUTEX_WAKE_PRIVATE, 0}, "futex", 0},
    {TRY_getrandom, {0, 0, -1}, "getrandom", 1},
    {TRY_pipe2, {0, -1, 0}, "pipe2", 0},
    {TRY_read, {-1, 0, 0}, "read", 0},
    {SYS_close, {-1, 0, 0}, "close", 0},
    {TRY_fstat, {-1, 0, 0}, "fstat", 0},
    {TRY_newfstatat, {-1, 0, 0}, "newfstatat", 0},
    {TRY_madvise, {1, 0, 0}, "madvise", 0},
    {SYS_mprotect, {1, 0, 0}, "mprotect", 0},
    {SYS_munmap, {1, 0, 0}, "munmap", 0},
    {TRY_rt_sigaction, {0, 0, 0}, "rt_sigaction", 0},
    {TRY_rt_sigprocmask, {0, 0, 0}, "rt_sigprocmask", 0},
    {TRY_uname, {0, 0, 0}, "uname", 0},
};

/* Without a ring Node does without it; with one it aborts where the ring cannot be entered. */
static const struct call ring_setup = {TRY_io_uring_setup, {0, 0, 0}, "io_uring_setup", 0};
static const struct call ring_enter = {TRY_io_uring_enter, {-1, 0, 0}, "io_uring_enter", 1};

/* Returns what the kernel or a filter says against a call, 0 where Node can make it. */
static long refusal(const struct call *call) {
  long result = sys(call->number, call->arguments[0], call->arguments[1], call->arguments[2], 0, 0, 0);
  if (result == ENOSYS_ERROR) return call->has_fallback ? 0 : result;
  return result == EPERM_ERROR || result == EACCES_ERROR ? result : 0;
}

static void require(const struct call *call) {
  long error = refusal(call);
  if (!error) return;
  char reason[320];
  char *end = append(append(reason, "the system call "), call->name);
  append(end, ", which Node needs, is refused: allow it in the seccomp profile of the container or SystemCallFilter of the "
              "service that starts modekeep");
  fail(reason, error);
}

void check_calls(void) {
  for (word i = 0; i < sizeof calls / sizeof *calls; i++) require(&calls[i]);
  if (!refusal(&ring_setup)) require(&ring_enter);
}

/*
 * Node makes memory executable after it has written code there, and aborts where a policy refuses that: SELinux (execmem), prctl's
 * PR_SET_MDWE, or the filter of systemd's MemoryDenyWriteExecute.
 */
void check_code_memory(void) {
  long page = mmap(0, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (failed(page)) return;
  long result = CALL(mprotect, page, 1, PROT_READ | PROT_EXEC, 0, 0, 0);
  munmap(page, 1);
  if (failed(result))
    fail("a security policy of this host forbids to execute memory that was written, which Node needs: allow execmem in the SELinux "
         "policy, or remove MemoryDenyWriteExecute from the service that starts modekeep",
         result);
}
