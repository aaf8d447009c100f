#pragma once

/* The memory that C and JavaScript share, one for each environment. JavaScript sees rows and arena, C keeps both. */
enum { ROWS = 64, ARENA = 2 << 16, GUARD = 1 << 16 };

/* A call to make: its index in the table, six arguments, and the place of its result. */
struct row {
  double call, arguments[6], result;
};

/* Sizes are multiples of the largest page there is (arm64: 64 KiB). */
struct shared {
  struct row rows[ROWS] __attribute__((aligned(1 << 16)));
  char arena[ARENA] __attribute__((aligned(1 << 16)));
  /* Not mapped: what runs over the arena's end is stopped. */
  char guard[GUARD];
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
