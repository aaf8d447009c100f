/* Entries of a directory, as a job looks at them. */

/* include/uapi/{asm-generic,linux}/{fcntl,stat}.h; O_NOFOLLOW differs between processors. */
enum { O_CLOEXEC = 02000000, O_PATH = 010000000 };
enum { STATX_BTIME = 0x800, STATX_MNT_ID = 0x1000, STATX_MNT_ID_UNIQUE = 0x4000 };
enum { WANTED = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE };

static int see(int parent, const char *name, int flags, struct sight *sight) {
  return (int)CALL(statx, parent, name, flags | AT_NO_AUTOMOUNT, WANTED, sight->statx, 0);
}

static void look_at(int parent, enum how how, struct sight *sight) {
  /* Whatever JavaScript wrote, a name ends. */
  sight->name[sizeof sight->name - 1] = 0;
  if (how == LOOK) {
    sight->look = see(parent, sight->name, AT_SYMLINK_NOFOLLOW, sight);
    return;
  }
  sight->handle = (int)CALL(openat, parent, sight->name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
  if (sight->handle < 0) return;
  sight->look = see(sight->handle, "", AT_EMPTY_PATH, sight);
  if (how == HOLD_AND_LIST)
    sight->list = (int)CALL(listxattrat, parent, sight->name, AT_SYMLINK_NOFOLLOW, sight->names, sizeof sight->names, 0);
}
