/*
 * modekeep's way to the kernel, a Node-API addon. JavaScript writes rows of numbers; each is checked against the table of
 * calls.h before anything happens. No address comes from JavaScript, and none gets there.
 */
#define NAPI_VERSION 9
#include <node_api.h>

#include "calls.h"

/* A test's build puts something between that looks at what would reach the kernel. */
#ifndef SYSTEM_CALL
#define SYSTEM_CALL sys
#else
long SYSTEM_CALL(long number, long a, long b, long c, long d, long e, long f);
#endif
#define CALL(name, a, b, c, d, e, f) \
  SYSTEM_CALL(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32 };
enum { CLONE_VM = 0x100, CLONE_FILES = 0x400, CLONE_VFORK = 0x4000, CLONE_NEWUSER = 0x10000000, SIG_SETMASK = 2 };

#include "jobs.h"

/* Not for NaN, nor for anything between two whole numbers. */
static int is_whole(double value, double least, double most) {
  return value >= least && value <= most && (double)(long)value == value;
}

/* Whether `size` bytes from there on are the arena's. */
static int is_room(double offset, long size) { return is_whole(offset, 0, ARENA - size); }

static int has_nul(const char *from, const char *end) {
  while (from < end)
    if (*from++ == 0) return 1;
  return 0;
}

/* What the kernel gets for an argument; returns whether it may. */
static int pass(const char *arena, const struct row *row, const struct argument *argument, double given, long *passed) {
  switch (argument->kind) {
    case FIXED: *passed = argument->value; return 1;
    case INTEGER: return is_whole(given, -2147483648.0, 4294967295.0) && (*passed = (long)given, 1);
    case LENGTH: return is_whole(given, 0, ARENA) && (*passed = (long)given, 1);
    case WIDE:
      if (!is_room(given, sizeof *passed)) return 0;
      __builtin_memcpy(passed, arena + (long)given, sizeof *passed);
      return 1;
    case NAME:
      if (!is_room(given, 1) || !has_nul(arena + (long)given, arena + ARENA)) return 0;
      break;
    case BUFFER:
      if (!is_room(given, argument->value)) return 0;
      break;
    case SIZED: {
      double size = row->arguments[argument->value];
      if (!is_whole(size, 0, ARENA) || !is_room(given, (long)size)) return 0;
      break;
    }
    default: return 0;
  }
  *passed = (long)(arena + (long)given);
  return 1;
}

/* Makes the call of a row. @returns whether the table permits it; the result is the kernel's own, -errno on failure */
static int make(struct shared *shared, struct row *row) {
  if (!is_whole(row->call, 0, CALLS - 1)) return 0;
  const struct call *call = &calls[(long)row->call];
  long a[6];
  for (int i = 0; i < 6; i++)
    if (!pass(shared->arena, row, &call->arguments[i], row->arguments[i], &a[i])) return 0;
  row->result = (double)SYSTEM_CALL(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return 1;
}

static struct shared *shared_of(napi_env env, napi_callback_info info, size_t *count, napi_value *argument) {
  void *shared = 0;
  napi_get_cb_info(env, info, count, argument, 0, &shared);
  return shared;
}

/* run(count): the first rows, one after another, up to one that is refused; that one's result is NaN. */
static napi_value run(napi_env env, napi_callback_info info) {
  size_t given = 1;
  napi_value argument;
  double count;
  struct shared *shared = shared_of(env, info, &given, &argument);
  if (napi_get_value_double(env, argument, &count) != napi_ok || !is_whole(count, 1, ROWS)) {
    napi_throw_range_error(env, 0, "run takes a number of rows");
    return 0;
  }
  for (struct row *row = shared->rows, *end = row + (long)count; row < end; row++) {
    if (make(shared, row)) continue;
    row->result = __builtin_nan("");
    break;
  }
  return 0;
}

/* Whether the argument at `index` is a whole number below `end`; puts it. */
static int number_below(napi_env env, napi_value argument, int end, int *number) {
  double given;
  if (napi_get_value_double(env, argument, &given) != napi_ok || !is_whole(given, 0, end - 1)) return 0;
  *number = (int)given;
  return 1;
}

static struct job *idle(struct shared *shared, int index) {
  struct job *job = &shared->jobs[index];
  return is_idle(job) ? job : 0;
}

/* start(job, count, others): the first changes of an idle job are to be made, by so many other threads too. */
static napi_value start(napi_env env, napi_callback_info info) {
  size_t given = 3;
  napi_value arguments[3];
  int index, count, others;
  struct shared *shared = shared_of(env, info, &given, arguments);
  if (given == 3 && number_below(env, arguments[0], JOBS, &index) && number_below(env, arguments[1], CHANGES + 1, &count) &&
      number_below(env, arguments[2], MOST_OTHERS + 1, &others)) {
    struct job *job = idle(shared, index);
    if (job) return begin(env, shared, job, count, others), (napi_value)0;
  }
  napi_throw_range_error(env, 0, "start takes an idle job, a number of changes, and of other threads");
  return 0;
}

/* look(job, parent, how, count, others): the same of entries of a directory, by one of the jobs after those of changes. */
static napi_value look(napi_env env, napi_callback_info info) {
  size_t given = 5;
  napi_value arguments[5];
  int index, parent, how, count, others;
  struct shared *shared = shared_of(env, info, &given, arguments);
  if (given == 5 && number_below(env, arguments[0], JOBS + LOOKERS, &index) && index >= JOBS &&
      number_below(env, arguments[1], 0x7fffffff, &parent) && number_below(env, arguments[2], HOLD_AND_LIST + 1, &how) &&
      number_below(env, arguments[3], SIGHTS + 1, &count) && number_below(env, arguments[4], MOST_OTHERS + 1, &others)) {
    struct job *job = idle(shared, index);
    if (job) {
      job->parent = parent;
      job->how = how;
      return begin(env, shared, job, count, others), (napi_value)0;
    }
  }
  napi_throw_range_error(env, 0, "look takes an idle job of sights, a handle, how, a number of sights, and of other threads");
  return 0;
}

/* finish(job): returns when its changes are made, or its sights seen; and how many changes were not made. */
static napi_value finish(napi_env env, napi_callback_info info) {
  size_t given = 1;
  napi_value argument, rest = 0;
  int index;
  struct shared *shared = shared_of(env, info, &given, &argument);
  if (given == 1 && number_below(env, argument, JOBS + LOOKERS, &index)) {
    await(&shared->jobs[index]);
    napi_create_int32(env, shared->jobs[index].rest, &rest);
  } else napi_throw_range_error(env, 0, "finish takes a job");
  return rest;
}

/*
 * A child in a new user namespace that has nothing left to run when this returns: a zombie, or about to be one. It shares
 * descriptors, so that no copy of a lock outlives this process; it sends no signal when it ends, and gets none, since a
 * handler would run on this stack.
 */
static napi_value clone_user_namespace(napi_env env, napi_callback_info info) {
  (void)info;
  long all = -1, before;
  CALL(rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all, 0, 0);
  long child = clone_that_exits(CLONE_NEWUSER | CLONE_VM | CLONE_FILES | CLONE_VFORK);
  CALL(rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before, 0, 0);
  napi_value result = 0;
  napi_create_int64(env, child, &result);
  return result;
}

static void forget(napi_env env, void *shared, void *hint) {
  (void)env;
  (void)hint;
  CALL(munmap, shared, sizeof(struct shared), 0, 0, 0, 0);
}

/* Mapped, not allocated by V8: whatever becomes of the buffers that show it, it is there until the environment ends. */
static struct shared *map(void) {
  long at = CALL(mmap, 0, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at < 0 && at > -4096) return 0;
  struct shared *shared = (struct shared *)at;
  CALL(mprotect, shared->guard, GUARD, PROT_NONE, 0, 0, 0);
  for (int i = 0; i < JOBS; i++) shared->jobs[i].changes = shared->changes[i];
  for (int i = 0; i < LOOKERS; i++) shared->jobs[JOBS + i].sights = shared->sights[i];
  return shared;
}

#define TRY(call) \
  if ((call) != napi_ok) return 0

static napi_value table(napi_env env) {
  napi_value indexes, index;
  TRY(napi_create_object(env, &indexes));
  for (int i = 0; i < CALLS; i++) {
    TRY(napi_create_int32(env, i, &index));
    TRY(napi_set_named_property(env, indexes, calls[i].name, index));
  }
  return indexes;
}

NAPI_MODULE_INIT() {
  napi_value value, rows;
  struct shared *shared = map();
  if (!shared) {
    napi_throw_error(env, "ENOMEM", "there is no memory for system calls");
    return 0;
  }
  TRY(napi_set_instance_data(env, shared, forget, 0));

  TRY(napi_create_external_arraybuffer(env, shared->arena, ARENA, 0, 0, &value));
  TRY(napi_set_named_property(env, exports, "arena", value));
  TRY(napi_create_external_arraybuffer(env, shared->rows, sizeof shared->rows, 0, 0, &value));
  TRY(napi_create_typedarray(env, napi_float64_array, ROWS * sizeof(struct row) / sizeof(double), value, 0, &rows));
  TRY(napi_set_named_property(env, exports, "rows", rows));
  TRY(napi_set_named_property(env, exports, "calls", table(env)));
  TRY(napi_create_external_arraybuffer(env, shared->changes, sizeof shared->changes, 0, 0, &value));
  TRY(napi_set_named_property(env, exports, "changes", value));
  TRY(napi_create_external_arraybuffer(env, shared->sights, sizeof shared->sights, 0, 0, &value));
  TRY(napi_set_named_property(env, exports, "sights", value));
  TRY(napi_create_function(env, "look", NAPI_AUTO_LENGTH, look, shared, &value));
  TRY(napi_set_named_property(env, exports, "look", value));
  TRY(napi_create_function(env, "start", NAPI_AUTO_LENGTH, start, shared, &value));
  TRY(napi_set_named_property(env, exports, "start", value));
  TRY(napi_create_function(env, "finish", NAPI_AUTO_LENGTH, finish, shared, &value));
  TRY(napi_set_named_property(env, exports, "finish", value));
  TRY(napi_create_function(env, "run", NAPI_AUTO_LENGTH, run, shared, &value));
  TRY(napi_set_named_property(env, exports, "run", value));
  TRY(napi_create_function(env, "cloneUserNamespace", NAPI_AUTO_LENGTH, clone_user_namespace, 0, &value));
  TRY(napi_set_named_property(env, exports, "cloneUserNamespace", value));
  return exports;
}
