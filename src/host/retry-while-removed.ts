import { errorCode } from './system-error.ts'

/** More in a row than calls that remove and make one directory at the same time. */
const MOST_ATTEMPTS = 100

/**
 * Makes something below a directory that another call may remove while it is empty: what fails with ENOENT is tried again. Work has to
 * make the directory anew each time.
 * @throws what `work` throws; ENOENT only where it does not go away
 */
export function retryWhileRemoved<T>(work: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return work()
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || attempt === MOST_ATTEMPTS) throw error
    }
  }
}
