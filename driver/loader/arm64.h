/* arm64: the system call and the numbers. */

enum {
  SYS_dup3 = 24, SYS_pipe2 = 59, SYS_read = 63, SYS_ppoll = 73, SYS_kill = 129, SYS_rt_sigaction = 134, SYS_getpid = 172, SYS_getppid = 173,
  SYS_fcntl = 25, SYS_faccessat = 48, SYS_openat = 56, SYS_close = 57, SYS_write = 64,
  SYS_pread64 = 67, SYS_exit_group = 94, SYS_prctl = 167, SYS_munmap = 215, SYS_clone = 220, SYS_mmap = 222, SYS_mprotect = 226,
  SYS_newfstatat = 79, SYS_umask = 166, SYS_socket = 198, SYS_connect = 203, SYS_sendto = 206, SYS_getsockopt = 209, SYS_shutdown = 210,
  SYS_pidfd_open = 434,
  SYS_wait4 = 260, SYS_prlimit64 = 261, SYS_memfd_create = 279,
};

static inline long sys(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
