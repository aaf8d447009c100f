#include "loader.h"
#include "sys.h"

#define MIB(n) ((word)(n) << 20)
#define GIB(n) ((word)(n) << 30)
#define UNLIMITED ((word)-1)

/* struct rlimit */
struct limit {
  word soft, hard;
};

/* Names are as getrlimit(2) has them after RLIMIT_, and systemd after Limit. */
struct need {
  int which;
  char name[8], unit[10];
  /* Below `enough` a limit is raised; below `least` Node aborts, or would when it is at work. */
  word enough, least;
};

/* V8 reserves 1.1 GB of addresses when it starts, threads and a heap under load another 2 GB. */
static const struct need needs[] = {
    {RLIMIT_AS, "AS", " bytes", GIB(64), GIB(4)},
    {RLIMIT_DATA, "DATA", " bytes", GIB(64), GIB(2)},
    {RLIMIT_STACK, "STACK", " bytes", MIB(8), MIB(1)},
    {RLIMIT_FSIZE, "FSIZE", " bytes", UNLIMITED, MIB(64)},
    {RLIMIT_CPU, "CPU", " seconds", UNLIMITED, 60},
    {RLIMIT_NOFILE, "NOFILE", " files", 8192, 256},
};

/* What it counts, all of a user's processes and threads, is known to the kernel alone. */
static const struct need processes = {RLIMIT_NPROC, "NPROC", "", 4096, 0};

/* Node's own, those of its pool, and a helper program's. */
#define THREADS 16

static void refuse(const struct need *need, word value) __attribute__((noreturn));
static void refuse(const struct need *need, word value) {
  char reason[320];
  char *end = append(append(reason, "the limit RLIMIT_"), need->name);
  end = append(append_number(append(end, " is "), value), need->unit);
  end = append(end, ", and modekeep may not raise it: ");
  if (need->least) end = append(append(append_number(end, need->least), need->unit), " are needed");
  else end = append(append_number(append(end, "room for "), THREADS), " more processes of this user is needed");
  end = append(append(end, "; raise it for what starts modekeep (for a service of systemd's: Limit"), need->name);
  append(end, "=infinity)");
  fail(reason, 0);
}

/* Children that have ended count until they are waited for. */
static int has_room_for_threads(void) {
  long children[THREADS];
  int started = 0, has_room = 1;
  while (started < THREADS) {
    long child = CALL(clone, 0, 0, 0, 0, 0, 0);
    if (child == 0)
      for (;;) CALL(exit_group, 0, 0, 0, 0, 0, 0);
    has_room = child != -EAGAIN;
    if (failed(child)) break;
    children[started++] = child;
  }
  while (started) CALL(wait4, children[--started], 0, WALL, 0, 0, 0);
  return has_room;
}

/* Returns what the limit is then, or `enough` where it is not below. */
static word raise(const struct need *need) {
  struct limit now;
  if (failed(CALL(prlimit64, 0, need->which, 0, &now, 0, 0)) || now.soft >= need->enough) return need->enough;
  struct limit more = {need->enough, now.hard > need->enough ? now.hard : need->enough};
  if (!failed(CALL(prlimit64, 0, need->which, &more, 0, 0, 0))) return need->enough;
  /* Not more than its caller may have. */
  more.soft = now.hard < need->enough ? now.hard : need->enough;
  more.hard = now.hard;
  if (failed(CALL(prlimit64, 0, need->which, &more, 0, 0, 0))) more.soft = now.soft;
  if (more.soft < need->least) refuse(need, more.soft);
  return more.soft;
}

void raise_limits(void) {
  for (word i = 0; i < sizeof needs / sizeof *needs; i++) raise(&needs[i]);
}

/* Node aborts where a thread of its own cannot be made. */
void check_threads(void) {
  word value = raise(&processes);
  if (value < processes.enough && !has_room_for_threads()) refuse(&processes, value);
}
