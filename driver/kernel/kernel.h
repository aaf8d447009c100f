#pragma once

/* The memory that C and JavaScript share, one for each environment. JavaScript sees rows and arena, C keeps both. */
enum { ROWS = 64, ARENA = 2 << 16, GUARD = 1 << 16 };

/* Jobs of changes, for several walks at once, of sights after them, and how many of them can be with other threads. */
enum { JOBS = 48, CHANGES = 1200, LOOKERS = 2, SIGHTS = 256, MOST_OTHERS = 3, TASKS = 64 };

/* A call to make: its index in the table, six arguments, and the place of its result. */
struct row {
  double call, arguments[6], result;
};

enum result {
  /* And its handle is closed. */
  MADE,
  /* It is not what was seen, or could not be changed: nothing was. */
  ODD,
  /* It has its group, but not its permission bits. */
  HALF,
};

/* A file that is to get its group and its permission bits. */
struct change {
  /* ctime as seen, milliseconds. */
  double changed;
  int handle;
  /* With type bits. */
  unsigned seen_group, seen_mode;
  unsigned group, mode;
  int needs_same_time, result, unused;
};

/* An entry of a directory that is looked at. */
struct sight {
  /* What openat, statx and listxattrat returned, -errno on failure. */
  int handle, look, list, unused;
  char statx[256], names[112], name[256];
};

/* By its name alone; or opened, and by that handle; or the names of its extended attributes too. */
enum how { LOOK, HOLD, HOLD_AND_LIST };

/* Of changes or of sights. */
struct job {
  /* Which start it is of (32 bits), how many there are (16), and the next that nobody has (16). */
  unsigned long state;
  /* How many are made, and how many of those changes were not. */
  int done, rest;
  struct change *changes;
  struct sight *sights;
  int parent;
  enum how how;
};

/* A job on its way to another thread; none: free. */
struct task {
  struct job *job;
  struct napi_async_work__ *work;
};

/* Sizes are multiples of the largest page there is (arm64: 64 KiB). */
struct shared {
  struct row rows[ROWS] __attribute__((aligned(1 << 16)));
  struct change changes[JOBS][CHANGES] __attribute__((aligned(1 << 16)));
  struct sight sights[LOOKERS][SIGHTS] __attribute__((aligned(1 << 16)));
  char arena[ARENA] __attribute__((aligned(1 << 16)));
  /* Not mapped: what runs over the arena's end is stopped. */
  char guard[GUARD];
  /* From here on JavaScript sees nothing. */
  struct job jobs[JOBS + LOOKERS];
  struct task tasks[TASKS];
};

enum kind {
  /* What the table says, whatever the row says: also each argument that a call does not have. */
  FIXED,
  /* A whole number of 32 bits, with a sign or without. */
  INTEGER,
  /* Where the arena holds a number of 64 bits, which is passed. */
  WIDE,
  /* Where the arena holds a name with its NUL. */
  NAME,
  /* Where the arena has room for a fixed number of bytes, without a pointer among them. */
  BUFFER,
  /* Where the arena has room for as many bytes as another argument says, which is a LENGTH. */
  SIZED,
  LENGTH,
};

struct argument {
  enum kind kind;
  /* FIXED: what is passed; BUFFER: bytes; SIZED: which argument, from 0. */
  unsigned value;
};

struct call {
  char name[24];
  int number;
  struct argument arguments[6];
};
