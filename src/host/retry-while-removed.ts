import { errorCode } from './system-error.ts'

/** More than the concurrent calls that remove and create one directory. */
const MAX_ATTEMPTS = 100

/**
 * Retries on ENOENT, because another call may remove an empty directory before something is created in it. `operation` must
 * create the directory again each time.
 * @throws the errors of `operation`, and ENOENT after the last attempt
 */
export function retryWhileRemoved<T>(operation: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return operation()
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw error
    }
  }
}
