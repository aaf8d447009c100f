/* no-arguments PROGRAM: runs it with neither arguments, its name included, nor an environment. */
#include <err.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char *none[] = {NULL};
  if (argc != 2) errx(2, "usage: no-arguments PROGRAM");
  execve(argv[1], none, none);
  err(1, "%s", argv[1]);
}
