/* x86-64: numbers of the system calls that the loader does not make. */
#include "../loader/x64.h"

/* asm/fcntl.h */
enum { O_NOFOLLOW = 0400000 };

enum {
  SYS_lseek = 8, SYS_rt_sigprocmask = 14, SYS_ioctl = 16,
  SYS_flock = 73, SYS_fstatfs = 138, SYS_umount2 = 166, SYS_setxattr = 188, SYS_getxattr = 191, SYS_listxattr = 194,
  SYS_removexattr = 197, SYS_getdents64 = 217, SYS_mkdirat = 258, SYS_mknodat = 259, SYS_fchownat = 260,
  SYS_unlinkat = 263, SYS_readlinkat = 267, SYS_futex = 202, SYS_statx = 332,
  SYS_sync = 162, SYS_syncfs = 306,
};

/* In the child every register but rax is as here, and it shares this stack: it touches neither. */
static inline long clone_that_exits(long flags) {
  register long r10 __asm__("r10") = 0;
  register long r8 __asm__("r8") = 0;
  long result;
  __asm__ volatile("syscall\n\t"
                   "test %%rax, %%rax\n\t"
                   "jnz 1f\n\t"
                   "xor %%edi, %%edi\n\t"
                   "mov %[exit], %%eax\n\t"
                   "syscall\n\t"
                   "hlt\n"
                   "1:"
                   : "=a"(result)
                   : "a"(SYS_clone), "D"(flags), "S"(0), "d"(0), "r"(r10), "r"(r8), [exit] "i"(SYS_exit_group)
                   : "rcx", "r11", "memory", "cc");
  return result;
}
