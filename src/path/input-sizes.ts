import { quoted, Refusal } from '../refusal/refusal.ts'

// The kernel's PATH_MAX, without its final zero, and NAME_MAX.
export const LONGEST_PATH = 4095
export const LONGEST_NAME = 255
/** Of every other field that a pod's author writes, in bytes. The kernel takes less than a page of mount options. */
export const LONGEST_FIELD = 4095
/** Of all options of a call, in bytes. A Secret's values are at most 1 MiB, and base64 makes them a third longer. */
export const LONGEST_OPTIONS = 2 * 2 ** 20
/** Of all values of a call's Secret together, in bytes, as the API server bounds a Secret. */
export const LONGEST_SECRETS = 2 ** 20

/**
 * Checks a path by its length alone, before anything else is done with it.
 * @param subject what the message begins with: `option "source"`
 * @returns one fault for the path, or one for each name
 */
export function pathSizeFaults(subject: string, path: string): string[] {
  const size = Buffer.byteLength(path)
  if (size > LONGEST_PATH) {
    return [
      `${subject} is ${quoted(path)}, which has ${size} bytes: a path has at most ${LONGEST_PATH} bytes, shorten it`,
    ]
  }
  const names = path.split('/').filter((name) => Buffer.byteLength(name) > LONGEST_NAME)
  return names.map(
    (name) => `${subject} has the name ${quoted(name)}: a name has at most ${LONGEST_NAME} bytes, shorten it`,
  )
}

/** The same for a text that is no path. */
export function fieldSizeFaults(subject: string, text: string, longest = LONGEST_FIELD): string[] {
  const size = Buffer.byteLength(text)
  return size > longest ? [`${subject} has ${size} bytes: at most ${longest} are accepted, shorten it`] : []
}

/** @throws {Refusal} for options that are not to be parsed */
export function assertOptionsSize(text: string): void {
  const size = Buffer.byteLength(text)
  if (size <= LONGEST_OPTIONS) return
  throw new Refusal(`the options have ${size} bytes: at most ${LONGEST_OPTIONS} are accepted, shorten them`)
}

/** @param sizeBytes of all values together */
export function secretsSizeFaults(sizeBytes: number): string[] {
  if (sizeBytes <= LONGEST_SECRETS) return []
  return [
    `the Secret's values have ${sizeBytes} bytes: at most ${LONGEST_SECRETS} are accepted, keep only the keys that the volume needs`,
  ]
}
