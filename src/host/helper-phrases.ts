/**
 * The only texts that a message may quote from a helper that had secrets. The helper's own output may contain a secret
 * in any form. These texts are modekeep's own copies.
 */
const PHRASES: readonly string[] = [
  // strerror(3)
  'Permission denied',
  'Operation not permitted',
  'No such file or directory',
  'No such device or address',
  'No such device',
  'Invalid argument',
  'Device or resource busy',
  'Input/output error',
  'No space left on device',
  'Read-only file system',
  'Operation not supported',
  'Operation already in progress',
  'Cannot allocate memory',
  'Connection refused',
  'Connection timed out',
  'Connection reset by peer',
  'Network is unreachable',
  'No route to host',
  'Host is down',
  'Required key not available',
  'Key has expired',
  'Key was rejected by service',
  'Stale file handle',
  'Protocol not supported',
  // getaddrinfo(3)
  'Name or service not known',
  'Temporary failure in name resolution',
  // mount.cifs(8)
  'could not resolve address for',
  'Unable to find suitable address',
  // ssh(1)
  'Could not resolve hostname',
  'Host key verification failed',
  'REMOTE HOST IDENTIFICATION HAS CHANGED',
  'Load key',
  'error in libcrypto',
  'invalid format',
  'incorrect passphrase supplied to decrypt private key',
  'Too many authentication failures',
  'subsystem request failed',
  'Connection closed by',
  'remote host has disconnected',
  // fusermount3(1)
  'fuse device not found',
  'mountpoint is not empty',
  'option allow_other only allowed if',
  // s3fs(1), rclone(1), gocryptfs(1)
  'Access Denied',
  'SignatureDoesNotMatch',
  'InvalidAccessKeyId',
  'The specified bucket does not exist',
  'invalid credentials',
  'could not determine how to establish security credentials',
  'Password incorrect',
]

/** The largest errno of Linux, errno(3). */
const MAX_ERRNO = 133

/** More phrases add little to the reason, because the helper chooses its output. */
const MAX_PHRASES = 3

/** Finds the listed texts in an output. @param output on one line, with its secrets masked */
export function findPhrases(output: string): string[] {
  const text = output.toLowerCase()
  const [, errno = ''] = /mount error\((\d{1,3})\)/.exec(text) ?? []
  const isErrno = Number(errno) >= 1 && Number(errno) <= MAX_ERRNO
  const matches = PHRASES.filter((phrase) => text.includes(phrase.toLowerCase()))
  // A phrase that is part of another match adds nothing.
  const longest = matches.filter((phrase) => !matches.some((other) => other !== phrase && other.includes(phrase)))
  return [...(isErrno ? [`mount error(${Number(errno)})`] : []), ...longest].slice(0, MAX_PHRASES)
}
