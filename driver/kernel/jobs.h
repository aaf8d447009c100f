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

/* By whoever comes first: the thread it was given to, or the one that waits for it. */
static void work(struct job *job) {
  int state = QUEUED;
  if (!__atomic_compare_exchange_n(&job->state, &state, RUNNING, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
  if (job->sights) look_at_all(job);
  else make_changes(job);
  __atomic_store_n(&job->state, DONE, __ATOMIC_SEQ_CST);
  futex(&job->state, FUTEX_WAKE_PRIVATE, ALL_WAITERS);
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

static void await(struct job *job) {
  work(job);
  while (__atomic_load_n(&job->state, __ATOMIC_SEQ_CST) == RUNNING) futex(&job->state, FUTEX_WAIT_PRIVATE, RUNNING);
}
