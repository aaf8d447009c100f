#pragma once
#include <elf.h>

#if defined(__x86_64__)
#include "x64.h"
#elif defined(__aarch64__)
#include "arm64.h"
#endif

typedef unsigned long word;

#define LIBRARIES 7

/* One carried library; ld.so reads `path`, which DT_NEEDED of the program names. */
struct slot {
  char path[28];
  int fd;
};

struct library {
  const char *start;
  word size;
  char soname[24];
};

/* Node's addon of driver/kernel: Node opens it by its descriptor, in each thread that makes system calls. */
#define KERNEL_VARIABLE "MODEKEEP_KERNEL="

/* Tells Node that a process supervises it; its value says which process was given up before, for how long it was silent. */
#define SUPERVISED_VARIABLE "MODEKEEP_SUPERVISED="

/* Written by scripts/build/layout.ts right behind the code: same order, same sizes. */
struct config {
  word entry;
  word headers;
  word header_count;
  struct slot *slots;
  struct library libraries[LIBRARIES];
  struct library interpreter;
  struct library kernel;
};

/* For declarations too, or the compiler would go through a table of addresses. */
#define MOST_DIGITS 20
#define KERNEL_VARIABLE_ROOM (sizeof KERNEL_VARIABLE + MOST_DIGITS)
#define SUPERVISED_VARIABLE_ROOM (sizeof SUPERVISED_VARIABLE + 2 * MOST_DIGITS + sizeof "  ended")

/* A worker that accepted a call and fell silent; `pid` is 0 where there is none. */
struct unanswered {
  long pid;
  word silent_ms;
};

#pragma GCC visibility push(hidden)

extern const struct config config;

void fail(const char *reason, long error) __attribute__((noreturn));
void raise_limits(void);
void check_threads(void);
void check_calls(void);
void check_code_memory(void);
char *hide_arguments(char **argv, word count);
struct unanswered ask_resident(char **argv, word count, char **envp);
/* Ends this process with a reply. Returns how long a worker was silent that had accepted the call; 0 if none had. */
word relay_resident(int connection, word accept_ms);
char *supervise(char **argv, word count, char *variable, struct unanswered resident);
char **keep_known_environment(char **envp, char **to, char *variable, char *supervised);
void carry_libraries(void);
int carry_interpreter(void);
int carry_kernel(void);
void before_program(void);
word load(word *stack, word *lower);
word finish(void);
word map_interpreter(int fd, word page, word *entry);

#pragma GCC visibility pop
