/** What is needed from elsewhere cannot be had here: no apt, no mirror of Debian among its sources, no network. */
export class UnavailableError extends Error {}

/** Ends a program with the reason, as it is no fault of the program's. @throws whatever else it is given */
export const createUnavailableExit =
  (program: string) =>
  (error: unknown): never => {
    if (!(error instanceof UnavailableError)) throw error
    console.error(`${program}: ${error.message}`)
    process.exit(1)
  }
