/* x86-64: the system call and the numbers. */

enum {
  SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_mmap = 9, SYS_mprotect = 10, SYS_munmap = 11, SYS_pread64 = 17,
  SYS_rt_sigaction = 13, SYS_getpid = 39, SYS_clone = 56, SYS_kill = 62, SYS_getppid = 110, SYS_ppoll = 271, SYS_dup3 = 292,
  SYS_pipe2 = 293,
  SYS_wait4 = 61, SYS_fcntl = 72, SYS_prctl = 157, SYS_exit_group = 231, SYS_openat = 257, SYS_faccessat = 269,
  SYS_socket = 41, SYS_connect = 42, SYS_sendto = 44, SYS_shutdown = 48, SYS_getsockopt = 55, SYS_umask = 95, SYS_newfstatat = 262,
  SYS_pidfd_open = 434,
  SYS_prlimit64 = 302, SYS_memfd_create = 319,
};

static inline long sys(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
