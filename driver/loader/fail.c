#include "loader.h"
#include "sys.h"

static const char *name(long error) {
  if (error == -1) return "EPERM";
  if (error == -2) return "ENOENT";
  if (error == -12) return "ENOMEM";
  if (error == -13) return "EACCES";
  if (error == -23) return "ENFILE";
  if (error == -24) return "EMFILE";
  if (error == -28) return "ENOSPC";
  if (error == -38) return "ENOSYS";
  return 0;
}

/* Kubelet's verbs (kubernetes pkg/volume/flexvolume/driver-call.go). Pointers to them would need relocations. */
static const char kubelet_verbs[][16] = {
    "init",        "mount",         "unmount",      "getvolumename", "attach", "waitforattach", "isattached", "detach",
    "mountdevice", "unmountdevice", "expandvolume", "expandfs"};

/* Without a command line that can be read, the caller may be kubelet. */
static int is_called_by_kubelet(void) {
  char arguments[4200];
  long fd = open("/proc/self/cmdline");
  long size = failed(fd) ? 0 : pread(fd, arguments, sizeof arguments - 1, 0);
  if (size <= 0) return 1;
  arguments[size] = 0;
  word first = length(arguments) + 1;
  if (first >= (word)size) return 0;
  for (word at = 0; at < sizeof kubelet_verbs / sizeof *kubelet_verbs; at++)
    if (equals(arguments + first, kubelet_verbs[at])) return 1;
  return 0;
}

/*
 * For kubelet status 0 and stdout: on any other status it logs the whole command line, with its secrets. A container or a
 * person that calls another verb has to see the failure.
 */
void fail(const char *reason, long error) {
  char line[640];
  char *end = append(line, "{\"status\":\"Failure\",\"message\":\"modekeep: cannot start: ");
  end = append(end, reason);
  if (error) {
    end = append(end, " (");
    end = name(error) ? append(end, name(error)) : append_number(append(end, "errno "), -error);
    end = append(end, ")");
  }
  end = append(end, "\"}\n");
  write(1, line, end - line);
  int status = !is_called_by_kubelet();
  for (;;) CALL(exit_group, status, 0, 0, 0, 0, 0);
}
