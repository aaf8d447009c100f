import { getSystemErrorName } from 'node:util'

/**
 * Errors of Linux that libuv, and so Node, has no name for: include/uapi/asm-generic/errno.h, and those of include/linux/errno.h
 * that network file systems let through. A stale NFS handle and a full quota are among them.
 */
const NAMES_BY_ERRNO: Readonly<Record<number, string>> = {
  10: 'ECHILD',
  15: 'ENOTBLK',
  33: 'EDOM',
  35: 'EDEADLK',
  37: 'ENOLCK',
  42: 'ENOMSG',
  43: 'EIDRM',
  44: 'ECHRNG',
  45: 'EL2NSYNC',
  46: 'EL3HLT',
  47: 'EL3RST',
  48: 'ELNRNG',
  50: 'ENOCSI',
  51: 'EL2HLT',
  52: 'EBADE',
  53: 'EBADR',
  54: 'EXFULL',
  55: 'ENOANO',
  56: 'EBADRQC',
  57: 'EBADSLT',
  59: 'EBFONT',
  60: 'ENOSTR',
  62: 'ETIME',
  63: 'ENOSR',
  65: 'ENOPKG',
  66: 'EREMOTE',
  67: 'ENOLINK',
  68: 'EADV',
  69: 'ESRMNT',
  70: 'ECOMM',
  72: 'EMULTIHOP',
  73: 'EDOTDOT',
  74: 'EBADMSG',
  76: 'ENOTUNIQ',
  77: 'EBADFD',
  78: 'EREMCHG',
  79: 'ELIBACC',
  80: 'ELIBBAD',
  81: 'ELIBSCN',
  82: 'ELIBMAX',
  83: 'ELIBEXEC',
  85: 'ERESTART',
  86: 'ESTRPIPE',
  87: 'EUSERS',
  96: 'EPFNOSUPPORT',
  102: 'ENETRESET',
  109: 'ETOOMANYREFS',
  115: 'EINPROGRESS',
  116: 'ESTALE',
  117: 'EUCLEAN',
  118: 'ENOTNAM',
  119: 'ENAVAIL',
  120: 'EISNAM',
  122: 'EDQUOT',
  123: 'ENOMEDIUM',
  124: 'EMEDIUMTYPE',
  126: 'ENOKEY',
  127: 'EKEYEXPIRED',
  128: 'EKEYREVOKED',
  129: 'EKEYREJECTED',
  130: 'EOWNERDEAD',
  131: 'ENOTRECOVERABLE',
  132: 'ERFKILL',
  133: 'EHWPOISON',
  521: 'EBADHANDLE',
  523: 'EBADCOOKIE',
  524: 'ENOTSUPP',
  526: 'ESERVERFAULT',
  527: 'EBADTYPE',
  528: 'EJUKEBOX',
}

/** @param errno greater than 0. @returns such as ENOENT */
export function nameErrno(errno: number): string {
  return NAMES_BY_ERRNO[errno] ?? getSystemErrorName(-errno)
}

/** Codes of errors of node:fs and node:net whose errno libuv does not know. */
const NAMELESS_CODE = /^(UNKNOWN|Unknown system error -\d+)$/

const hasNamelessCode = ({ code, errno }: NodeJS.ErrnoException) =>
  code !== undefined && errno !== undefined && NAMELESS_CODE.test(code)

/** Returns the errno name of an error, also where Node has none; undefined if it has no code. */
export function findErrnoName(error: NodeJS.ErrnoException): string | undefined {
  const { code, errno = 0 } = error
  if (typeof code !== 'string') return undefined
  return hasNamelessCode(error) ? nameErrno(Math.abs(errno)) : code
}

/** Returns the message of an error, with its errno name where Node writes only the number. */
export function formatErrorWithErrnoName(error: Error): string {
  const { syscall = '', path } = error as NodeJS.ErrnoException
  if (!hasNamelessCode(error)) return error.message
  return `${findErrnoName(error)}, ${syscall}${path === undefined ? '' : ` '${path}'`}`
}
