/** Suffix of a file that exists from the first synced batch of a new journal until its close. A missing log is then lost. */
export const LOG_MARK_SUFFIX = '.begun'

/** Suffixes of a journal's files. Those after the first have no meaning without it. */
export const JOURNAL_FILE_SUFFIXES = ['', '-journal', '-wal', '-shm', LOG_MARK_SUFFIX]
