import { createFault, type Fault } from '../../errors/fault.ts'
import { quoteValue, Refusal } from '../../errors/refusal.ts'

// PATH_MAX of the kernel without the terminating zero, and NAME_MAX.
export const MAX_PATH_BYTES = 4095
export const MAX_NAME_BYTES = 255
/** Limit of every other field that a pod's author writes. The kernel accepts less than a page of mount options. */
export const MAX_FIELD_BYTES = 4095
/** Limit of all options of a call. A Secret's values have at most 1 MiB, and base64 makes them a third longer. */
const MAX_OPTIONS_BYTES = 2 * 2 ** 20
/** Limit of all values of a call's Secret together. It is the API server's limit of a Secret. */
const MAX_SECRETS_BYTES = 2 ** 20

/**
 * Checks the length of a path and of its names, before anything else is done with it.
 * @param subject the beginning of the message: `option "source"`
 * @returns one fault for the path, or one for each name
 */
export function checkPathSize(subject: string, path: string): Fault[] {
  const size = Buffer.byteLength(path)
  if (size > MAX_PATH_BYTES) {
    return [
      createFault(
        'input-too-large',
        `${subject} is ${quoteValue(path)}, which has ${size} bytes`,
        `a path has at most ${MAX_PATH_BYTES} bytes, shorten it`,
      ),
    ]
  }
  const names = path.split('/').filter((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)
  return names.map((name) =>
    createFault(
      'input-too-large',
      `${subject} has the name ${quoteValue(name)}`,
      `a name has at most ${MAX_NAME_BYTES} bytes, shorten it`,
    ),
  )
}

/** Checks the length of a text that is not a path. */
export function checkFieldSize(subject: string, text: string, longest = MAX_FIELD_BYTES): Fault[] {
  const size = Buffer.byteLength(text)
  return size > longest
    ? [createFault('input-too-large', `${subject} has ${size} bytes`, `at most ${longest} are accepted, shorten it`)]
    : []
}

/** @throws {Refusal} if the options are too long to be parsed */
export function assertOptionsSize(text: string): void {
  const size = Buffer.byteLength(text)
  if (size <= MAX_OPTIONS_BYTES) return
  throw Refusal.of(
    'input-too-large',
    `the options have ${size} bytes`,
    `at most ${MAX_OPTIONS_BYTES} are accepted, shorten them`,
  )
}

/** @param sizeBytes the sum of all values' sizes */
export function checkSecretsSize(sizeBytes: number): Fault[] {
  if (sizeBytes <= MAX_SECRETS_BYTES) return []
  return [
    createFault(
      'input-too-large',
      `the Secret's values have ${sizeBytes} bytes`,
      `at most ${MAX_SECRETS_BYTES} are accepted, keep only the keys that the volume needs`,
    ),
  ]
}
