#pragma once
#include <elf.h>

#if defined(__x86_64__)
#include "x64.h"
#elif defined(__aarch64__)
#include "arm64.h"
#endif

typedef unsigned long word;

#define LIBRARIES 3

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

/* Written by scripts/build/layout.ts right behind the code: same order, same sizes. */
struct config {
  word entry;
  word headers;
  word header_count;
  struct slot *slots;
  struct library libraries[LIBRARIES];
};

/* For declarations too, or the compiler would go through a table of addresses. */
#pragma GCC visibility push(hidden)

extern const struct config config;

void fail(const char *reason, long error) __attribute__((noreturn));
void hide_arguments(char **argv, word count);
char **keep_known_environment(char **envp);
void carry_libraries(void);
void before_program(void);
word load(word *stack);
word finish(void);
word map_interpreter(word page, word *entry);

#pragma GCC visibility pop
