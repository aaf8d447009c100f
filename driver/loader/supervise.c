#include "loader.h"
#include "sys.h"

/*
 * A process of a pod can keep a directory of its volume locked. A process that waits for such a lock in the kernel may not even end
 * when it is killed. Kubelet waits for the process that it started, and for the end of its output. So that process only
 * supervises, and its child becomes Node.
 */

#define POLL_MS 250
#define ENDING_NS 200000
#define STARTING_MS 60000
#define UNTIL_ENDED_MS 2000
#define OUTPUT 1

struct supervised {
  /* 0 for a worker that another process started. */
  long pid;
  int output;
  /* Its reply has begun: from there on every byte is kubelet's. */
  int has_replied;
  word patience_ms, silent_ms, number;
  int has_number, was_heard;
};

/* After an error its status is not known: `status` is that error then, which is negative. */
static int has_ended(const struct supervised *child, int *status) {
  long result = CALL(wait4, child->pid, status, WNOHANG, 0, 0, 0);
  if (failed(result)) *status = result;
  return result != 0 && result != -EINTR;
}

static void pause_ms(word milliseconds) {
  struct time timeout = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  CALL(ppoll, 0, 0, &timeout, 0, 0, 0);
}

static void write_all(const char *bytes, long size) {
  while (size > 0) {
    long written = write(OUTPUT, bytes, size);
    if (written == -EAGAIN) pause_ms(5);
    if (written == -EINTR || written == -EAGAIN) continue;
    if (failed(written)) return;
    bytes += written;
    size -= written;
  }
}

/* Before its reply the child writes lines: an empty one says that it is alive, a number how long it may be silent. */
static void hear(struct supervised *child, const char *bytes, long size) {
  child->silent_ms = 0;
  child->was_heard = 1;
  while (size > 0 && !child->has_replied) {
    if (*bytes >= '0' && *bytes <= '9') {
      child->number = child->number * 10 + (*bytes - '0');
      child->has_number = 1;
    } else if (*bytes == '\n') {
      if (child->has_number) child->patience_ms = child->number;
      child->number = child->has_number = 0;
    } else {
      child->has_replied = 1;
      break;
    }
    bytes++, size--;
  }
  write_all(bytes, size);
}

/* Ends as the child has ended. */
static void end_as(int status) __attribute__((noreturn));
static void end_as(int status) {
  int signal = status & 0x7f;
  if (signal) CALL(kill, CALL(getpid, 0, 0, 0, 0, 0, 0), signal, 0, 0, 0, 0);
  for (;;) CALL(exit_group, signal ? 128 + signal : status >> 8 & 0xff, 0, 0, 0, 0, 0);
}

/* Passes on what the child wrote before it ended. Another process may keep its output open, so a read could wait. */
static void drain(struct supervised *child) {
  char bytes[4096];
  struct poll descriptor = {child->output, POLLIN, 0};
  struct time at_once = {0, 0};
  while (CALL(ppoll, &descriptor, 1, &at_once, 0, 0, 0) > 0) {
    long size = CALL(read, child->output, bytes, sizeof bytes, 0, 0, 0);
    if (size <= 0) return;
    hear(child, bytes, size);
  }
}

/*
 * Returns when the child has been silent for longer than it may; where it has ended, this process ends too. For a worker that
 * another process started, returns also when its connection is closed.
 */
static void relay(struct supervised *child) {
  char bytes[4096];
  int status = 0, is_open = 1;
  word silent_ns = 0;
  while (child->silent_ms < child->patience_ms) {
    struct poll descriptor = {child->output, POLLIN, 0};
    /* Its output is closed a moment before it ends. */
    word poll_ms = child->patience_ms < POLL_MS ? child->patience_ms : POLL_MS;
    word wait_ns = is_open ? poll_ms * 1000000 : ENDING_NS;
    struct time timeout = {0, wait_ns};
    long ready = CALL(ppoll, &descriptor, is_open, &timeout, 0, 0, 0);
    /* Without ppoll no time passes here: the read waits for the child, which is not given up then. */
    if (ready > 0 || (failed(ready) && ready != -EINTR && is_open)) {
      long size = CALL(read, child->output, bytes, sizeof bytes, 0, 0, 0);
      if (size > 0) hear(child, bytes, size);
      else if (size != -EINTR && size != -EAGAIN) is_open = 0;
    } else {
      silent_ns += wait_ns;
      child->silent_ms += silent_ns / 1000000;
      silent_ns %= 1000000;
    }
    if (child->pid == 0 && !is_open) return;
    if (child->pid == 0 || (is_open && ready != 0) || !has_ended(child, &status)) continue;
    /* It may have replied since the time was over. */
    if (is_open) drain(child);
    if (status < 0 && child->has_replied) end_as(0);
    if (status <= 0 && !child->has_replied) fail("the process that makes the call ended without an answer", status);
    end_as(status);
  }
}

/* As Node does: kubelet may have stopped reading. */
static void ignore_closed_output(void) {
  struct signal_action ignored = {.handler = SIG_IGN};
  CALL(rt_sigaction, SIGPIPE, &ignored, 0, sizeof ignored.mask, 0, 0);
}

word relay_resident(int connection, word accept_ms) {
  struct supervised worker = {.output = connection, .patience_ms = accept_ms};
  ignore_closed_output();
  relay(&worker);
  if (worker.has_replied) end_as(0);
  return worker.was_heard && worker.silent_ms >= worker.patience_ms ? worker.silent_ms : 0;
}

/* Returns 0 in the child, which goes on to Node; -errno where there can be none. */
static long start(struct supervised *child) {
  int ends[2];
  long parent = CALL(getpid, 0, 0, 0, 0, 0, 0);
  long error = CALL(pipe2, ends, O_CLOEXEC, 0, 0, 0, 0);
  if (failed(error)) return error;
  long pid = CALL(clone, SIGCHLD, 0, 0, 0, 0, 0);
  if (pid != 0) {
    close(ends[1]);
    if (failed(pid)) close(ends[0]);
    *child = (struct supervised){.pid = pid, .output = ends[0], .patience_ms = STARTING_MS};
    return pid;
  }
  /* A call ends with the process that kubelet knows. */
  CALL(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
  if (CALL(getppid, 0, 0, 0, 0, 0, 0) != parent)
    for (;;) CALL(exit_group, 1, 0, 0, 0, 0, 0);
  CALL(dup3, ends[1], OUTPUT, 0, 0, 0, 0);
  close(ends[0]);
  close(ends[1]);
  return 0;
}

/* Returns whether a process is left, which the kernel does not let end. */
static int give_up(const struct supervised *child) {
  int status;
  CALL(kill, child->pid, SIGKILL, 0, 0, 0, 0);
  close(child->output);
  for (int waited = 0; waited < UNTIL_ENDED_MS; waited += 10) {
    if (has_ended(child, &status)) return 0;
    pause_ms(10);
  }
  return 1;
}

static void name_given_up(char *end, word pid, word silent_ms, int is_left) {
  end = append(append_number(end, pid), " ");
  append(append_number(end, silent_ms), is_left ? " left" : " ended");
}

/*
 * Returns in the process that becomes Node. A call that was given up is made once more, by a process that learns so from the
 * variable: it answers for the first one, and asks nothing of the volume. `resident` is a worker that was given up.
 */
char *supervise(char **argv, word count, char *variable, struct unanswered resident) {
  struct supervised child;
  if (count < 3 || (!equals(argv[1], "mount") && !equals(argv[1], "unmount"))) return 0;
  char *end = append(variable, SUPERVISED_VARIABLE);
  if (resident.pid) name_given_up(end, resident.pid, resident.silent_ms, 1);
  long pid = start(&child);
  if (failed(pid)) return 0;
  if (pid == 0) return variable;
  ignore_closed_output();
  relay(&child);
  word silent_ms = child.silent_ms;
  int is_left = give_up(&child);
  if (child.has_replied) end_as(0);
  name_given_up(end, pid, silent_ms, is_left);
  pid = start(&child);
  if (pid == 0) return variable;
  if (!failed(pid)) {
    relay(&child);
    give_up(&child);
    if (child.has_replied) end_as(0);
  }
  fail("the process that makes the call does not respond: its log on the node says more", 0);
}
