import { execa } from 'execa'

/**
 * The time that a release bears, in seconds since 1970: SOURCE_DATE_EPOCH, as reproducible-builds.org has it, else that of the
 * last commit. Never the time of the build.
 */
export async function readSourceDate(directory: string, given: string | undefined): Promise<number> {
  if (given !== undefined) {
    if (/^\d{1,10}$/.test(given)) return Number(given)
    throw new Error(`SOURCE_DATE_EPOCH is "${given}": write seconds since 1970`)
  }
  const { stdout, failed } = await execa('git', ['log', '-1', '--format=%ct'], { cwd: directory, reject: false })
  if (!failed && /^\d+$/.test(stdout)) return Number(stdout)
  throw new Error('this is no git checkout: set SOURCE_DATE_EPOCH to the time of the sources, in seconds since 1970')
}
