/*
 * What another thread does while JavaScript goes on. Nothing of JavaScript's is touched there: a job is numbers and names
 * in memory that belongs to C, and system calls on handles that are open.
 */

/* include/uapi/linux/{fcntl,stat,futex}.h */
enum { AT_SYMLINK_NOFOLLOW = 0x100, AT_EMPTY_PATH = 0x1000, AT_NO_AUTOMOUNT = 0x800, STATX_BASIC_STATS = 0x7ff };
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129, ALL_WAITERS = 0x7fffffff };

#include "changes.h"
#include "sights.h"

static long futex(int *word, int what, int value) { return CALL(futex, word, what, value, 0, 0, 0); }

static int count_of(unsigned long state) { return state >> 16 & 0xffff; }

/* Together, since neighbours lie in the same blocks of a disk. */
enum { SHARE = 8 };

/* The next ones that nobody has: where they begin, and how many; 0: there are none. A late thread gets none of another start. */
static int take(struct job *job, int *first) {
  unsigned long state = __atomic_load_n(&job->state, __ATOMIC_SEQ_CST);
  int share;
  do {
    *first = state & 0xffff;
    share = count_of(state) - *first;
    if (share > SHARE) share = SHARE;
  } while (share && !__atomic_compare_exchange_n(&job->state, &state, state + share, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return share;
}

/* By every thread it was given to, and by the one that waits for it, which so waits for no thread that has no processor. */
static void work(struct job *job) {
  for (int first, share; (share = take(job, &first));) {
    /* Until these are done there is no other start. */
    int count = count_of(__atomic_load_n(&job->state, __ATOMIC_SEQ_CST)), rest = 0;
    for (int i = first; i < first + share; i++) {
      if (job->sights) look_at(job->parent, job->how, &job->sights[i]);
      else rest += !was_made(&job->changes[i]);
    }
    __atomic_add_fetch(&job->rest, rest, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&job->done, share, __ATOMIC_SEQ_CST) == count) futex(&job->done, FUTEX_WAKE_PRIVATE, ALL_WAITERS);
  }
}

static int is_idle(struct job *job) {
  return __atomic_load_n(&job->done, __ATOMIC_SEQ_CST) == count_of(__atomic_load_n(&job->state, __ATOMIC_SEQ_CST));
}

static void execute(napi_env env, void *task) {
  (void)env;
  work(((struct task *)task)->job);
}

/* In the thread that gave it away, some time later; by then the job may be another. */
static void complete(napi_env env, napi_status status, void *given) {
  struct task *task = given;
  (void)status;
  napi_delete_async_work(env, task->work);
  task->job = 0;
}

/* Gives a job to one of Node's threads, unless too many are on their way: then whoever waits for it does it. */
static void give(napi_env env, struct shared *shared, struct job *job) {
  struct task *task = shared->tasks, *end = task + TASKS;
  napi_value name;
  while (task < end && task->job) task++;
  if (task == end || napi_create_string_utf8(env, "modekeep", NAPI_AUTO_LENGTH, &name) != napi_ok) return;
  if (napi_create_async_work(env, 0, name, execute, complete, task, &task->work) != napi_ok) return;
  task->job = job;
  if (napi_queue_async_work(env, task->work) == napi_ok) return;
  napi_delete_async_work(env, task->work);
  task->job = 0;
}

/* Of a job that is idle: it may be made from now on, by so many others too. */
static void begin(napi_env env, struct shared *shared, struct job *job, int count, int others) {
  unsigned long start = (__atomic_load_n(&job->state, __ATOMIC_SEQ_CST) >> 32) + 1;
  __atomic_store_n(&job->rest, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&job->done, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&job->state, start << 32 | (unsigned long)count << 16, __ATOMIC_SEQ_CST);
  while (others-- > 0) give(env, shared, job);
}

static void await(struct job *job) {
  work(job);
  for (int done; !is_idle(job);) {
    done = __atomic_load_n(&job->done, __ATOMIC_SEQ_CST);
    if (!is_idle(job)) futex(&job->done, FUTEX_WAIT_PRIVATE, done);
  }
}
