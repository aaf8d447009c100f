/*
 * Runs in place of ld.so's first instruction: the executable has no PT_INTERP, so the kernel starts it here. Leaves to ld.so a
 * stack without secrets and foreign variables, and libraries that exist nowhere but in memory.
 */
#include "loader.h"
#include "sys.h"

static word *find(Elf64_auxv_t *aux, word type) {
  for (; aux->a_type != AT_NULL; aux++)
    if (aux->a_type == type) return &aux->a_un.a_val;
  fail("the kernel gave an incomplete auxiliary vector", 0);
}

/* `lower` is where the stack begins from now on: two words down, for the variables that are added. */
word load(word *stack, word *lower) {
  word count = stack[0];
  char **argv = (char **)(stack + 1);
  /* No core has the secrets of a call: not in a file, nor for a program that core_pattern names. */
  CALL(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
  /* Before Linux 5.18 a caller could leave argv empty; Node reads argv[0]. */
  if (count == 0) fail("it was started without a program name", 0);
  raise_limits();
  char *variable = hide_arguments(argv, count);
  struct unanswered resident = ask_resident(argv, count, argv + count + 1);
  check_calls();
  check_code_memory();
  check_threads();
  char *supervised = supervise(argv, count, variable + KERNEL_VARIABLE_ROOM, resident);
  carry_libraries();
  append_number(append(variable, KERNEL_VARIABLE), carry_kernel());

  for (word i = 0; i < count + 2; i++) lower[i] = stack[i];
  char **envp = (char **)lower + count + 2;
  Elf64_auxv_t *aux = (Elf64_auxv_t *)keep_known_environment(argv + count + 1, envp, variable, supervised);

  word entry;
  word base = map_interpreter(carry_interpreter(), *find(aux, AT_PAGESZ), &entry);
  *find(aux, AT_BASE) = base;
  *find(aux, AT_ENTRY) = (word)before_program;
  *find(aux, AT_PHDR) = config.headers;
  *find(aux, AT_PHNUM) = config.header_count;
  return entry;
}

/* ld.so has mapped the libraries: Node starts with one descriptor more than its caller gave, the addon's. */
word finish(void) {
  for (int i = 0; i < LIBRARIES; i++) close(config.slots[i].fd);
  return config.entry;
}
