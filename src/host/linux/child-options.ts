/** Of execa, for a child that gets nothing of this process but its descriptors. */
export const CHILD_OPTIONS = {
  env: {},
  extendEnv: false,
  cwd: '/',
  // A session of its own: a signal to its group reaches no other process, and none of a terminal reaches it.
  detached: true,
  cleanup: false,
  buffer: false,
  reject: false,
} as const
