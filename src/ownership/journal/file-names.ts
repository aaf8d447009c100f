/** Ends of the file that exists once the first batch of a new journal was synced. A log without it may be lost harmlessly. */
export const LOG_MARK_SUFFIX = '.begun'

/** Ends of the files of a journal. Those after the first have no meaning without it. */
export const JOURNAL_FILE_SUFFIXES = ['', '-journal', '-wal', '-shm', LOG_MARK_SUFFIX]
