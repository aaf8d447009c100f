#include "loader.h"
#include "sys.h"

static int memory_file(const char *name) {
  /* vm.memfd_noexec=2 wants the flag, Linux before 6.3 refuses it; mapping for execution works either way. */
  long fd = CALL(memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL, 0, 0, 0, 0);
  if (fd == -EINVAL) fd = CALL(memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0);
  if (failed(fd)) fail("memfd_create is not possible on this host", fd);
  if (fd > 2) return fd;
  /* The caller left a standard stream closed: Node must find it so. */
  long higher = CALL(fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
  if (failed(higher)) fail("no file descriptor is free", higher);
  close(fd);
  return higher;
}

static void fill(int fd, const struct library *library) {
  for (word done = 0; done < library->size;) {
    long written = write(fd, library->start + done, library->size - done);
    if (failed(written)) fail("there is no memory for the carried libraries", written);
    done += written;
  }
}

static void check_executable(int fd) {
  long code = mmap(0, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  if (failed(code)) fail("a security policy of this host forbids to run code from a memory file", code);
  munmap(code, 1);
}

static int memory_file_of(const struct library *library) {
  int fd = memory_file(library->soname);
  fill(fd, library);
  return fd;
}

void carry_libraries(void) {
  for (int i = 0; i < LIBRARIES; i++) {
    const struct library *library = &config.libraries[i];
    struct slot *slot = &config.slots[i];
    slot->fd = memory_file_of(library);
    /* ld.so compares names: with two slashes no later dlopen("/proc/self/fd/N") can mean this library. */
    append_number(append(slot->path, "/proc/self/fd//"), slot->fd);
  }
  check_executable(config.slots[0].fd);
  long missing = CALL(faccessat, AT_FDCWD, config.slots[0].path, R_OK, 0, 0, 0);
  if (failed(missing)) fail("/proc is not mounted", missing);
}

/* The kernel's mapping keeps the file: the descriptor is closed when ld.so is mapped. */
int carry_interpreter(void) { return memory_file_of(&config.interpreter); }

/* Stays open, closed on exec, as threads that start later open it again: so nobody may write to it from now on. */
int carry_kernel(void) {
  int fd = memory_file_of(&config.kernel);
  long sealed = CALL(fcntl, fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, 0, 0, 0);
  if (failed(sealed)) fail("a memory file cannot be sealed on this host", sealed);
  return fd;
}
