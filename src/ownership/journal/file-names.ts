/** Suffix of a file that exists once the first batch of a new journal was synced. Without it, no change was made yet. */
export const LOG_MARK_SUFFIX = '.begun'

/** Suffixes of a journal's files. Those after the first have no meaning without it. */
export const JOURNAL_FILE_SUFFIXES = ['', '-journal', '-wal', '-shm', LOG_MARK_SUFFIX]
