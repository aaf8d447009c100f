/* Changes of files, as a job makes them. */

/* struct statx, what is asked for of it. */
struct look {
  unsigned words[5], uid, gid;
  unsigned short mode;
  char rest[66];
  long seconds;
  unsigned nanoseconds;
  char end[148];
};

static int ask(int handle, struct look *look) {
  return CALL(statx, handle, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, look, 0) == 0;
}

/* As JavaScript reckons it. */
static double milliseconds(const struct look *look) { return (double)look->seconds * 1000 + look->nanoseconds / 1e6; }

/*
 * Gives one file its group and its permission bits, if it is what was seen: nothing that was not seen is changed. What is
 * in the way is JavaScript's to judge.
 */
static int make_change(const struct change *change) {
  struct look now;
  /* AT_FDCWD is no handle. */
  if (change->handle < 0 || !ask(change->handle, &now) || now.gid != change->seen_group || now.mode != change->seen_mode) return ODD;
  if (change->needs_same_time && milliseconds(&now) != change->changed) return ODD;
  int regroups = change->group != now.gid;
  if (regroups && CALL(fchownat, change->handle, "", -1, change->group, AT_EMPTY_PATH, 0)) return ODD;
  if (change->mode == (now.mode & 07777u)) return MADE;
  if (CALL(fchmodat2, change->handle, "", change->mode, AT_EMPTY_PATH, 0, 0) == 0) return MADE;
  return regroups ? HALF : ODD;
}

static int was_made(struct change *change) {
  change->result = make_change(change);
  if (change->result == MADE) CALL(close, change->handle, 0, 0, 0, 0, 0);
  return change->result == MADE;
}
