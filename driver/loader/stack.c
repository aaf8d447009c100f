#include "loader.h"
#include "sys.h"

/* Everybody may read /proc/PID/cmdline; the verb and its directory stay there for an operator's eyes. */
#define VISIBLE_ARGUMENTS 3

/* Returns room for the variables that the loader adds. */
char *hide_arguments(char **argv, word count) {
  word size = KERNEL_VARIABLE_ROOM + SUPERVISED_VARIABLE_ROOM;
  for (word i = 0; i < count; i++) size += length(argv[i]) + 1;
  /* One block in order: libuv takes the room for a process title from the distance between first and last. */
  long block = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (failed(block)) fail("there is no memory for the arguments", block);

  char *to = (char *)block;
  for (word i = 0; i < count; i++) {
    word bytes = length(argv[i]) + 1;
    copy(to, argv[i], bytes);
    if (i >= VISIBLE_ARGUMENTS) zero(argv[i], bytes);
    argv[i] = to;
    to += bytes;
  }
  return to;
}

/* Not here: what makes ld.so, glibc, OpenSSL or Node load code, write files or talk on stderr. */
static const char known[] =
    "PATH=\0HOME=\0LANG=\0LC_\0TERM=\0COLORTERM=\0NO_COLOR=\0FORCE_COLOR=\0COLUMNS=\0LINES=\0MODEKEEP_\0";

static int is_known(const char *variable) {
  if (begins_with(variable, KERNEL_VARIABLE) || begins_with(variable, SUPERVISED_VARIABLE)) return 0;
  for (const char *prefix = known; *prefix; prefix += length(prefix) + 1)
    if (begins_with(variable, prefix)) return 1;
  return 0;
}

/*
 * Writes variables to `to`, which lies below them, and the loader's own; `supervised` may be missing. The auxiliary vector is found by
 * walking past the environment, so it moves down too; the stack pointer keeps its alignment.
 */
char **keep_known_environment(char **envp, char **to, char *variable, char *supervised) {
  *to++ = variable;
  if (supervised) *to++ = supervised;
  while (*envp) {
    if (is_known(*envp)) *to++ = *envp;
    envp++;
  }
  *to++ = 0;
  /* Read before write: the two may overlap by half an entry. */
  Elf64_auxv_t *from = (Elf64_auxv_t *)(envp + 1), *aux = (Elf64_auxv_t *)to, entry;
  do *aux++ = entry = *from++;
  while (entry.a_type != AT_NULL);
  return to;
}
