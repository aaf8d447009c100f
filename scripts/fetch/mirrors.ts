import type { SpawnSyncOptions } from 'node:child_process'
import * as fs from 'node:fs'
import { runCommand } from './command.ts'
import { UnavailableError } from './unavailable.ts'

// Sandboxed, apt could not write into the cache of a user.
const APT_OPTIONS = ['APT::Sandbox::User=root', 'Acquire::Retries=1', 'Acquire::http::Timeout=15'].flatMap((option) => [
  '-o',
  option,
])

/** Where mirrors of Debian's security archive have their packages; others have none there. */
const SECURITY_POOL = 'pool/updates/'

/** Part of every apt, for no other use than to fetch one file by address and sum. */
const APT_HELPER_PATH = '/usr/lib/apt/apt-helper'

/**
 * Fetches a file from the mirrors that the machine's apt uses, with its proxies and credentials. It needs no package lists, no
 * root and no foreign architecture, and leaves nothing in apt's directories.
 * @param address below the top of a mirror
 * @param sum SHA-256 of the file
 * @throws {UnavailableError} with the reason
 */
export function downloadFromMirrors(address: string, sum: string, path: string): void {
  const reasons: string[] = []
  // Without any list it prints what it would ask for, and asks for nothing.
  const archive = address.startsWith(SECURITY_POOL) ? 'security' : 'main'
  for (const mirror of parseDebianMirrors(runAptGet(address, ['update', '--print-uris']), archive)) {
    try {
      runCommand(APT_HELPER_PATH, [
        ...APT_OPTIONS,
        '-q',
        'download-file',
        `${mirror}/${address}`,
        path,
        `SHA256:${sum}`,
      ])
      return
    } catch (error) {
      reasons.push(extractAptError(error as Error))
    }
  }
  const reason = reasons.join('; ') || "apt's sources name no mirror of Debian"
  throw new UnavailableError(`${address} cannot be fetched: ${reason}`)
}

/** The machine's apt-get, for `what`. @throws {UnavailableError} with its last words, or where there is none */
export function runAptGet(what: string, args: readonly string[], options: SpawnSyncOptions = {}): string {
  try {
    return runCommand('apt-get', [...APT_OPTIONS, '-q', ...args], options)
  } catch (error) {
    throw new UnavailableError(`${what} cannot be fetched: ${(error as Error).message}`)
  }
}

/** apt's last words are always the same; this is what it says before of the file. */
function extractAptError({ message, cause }: Error): string {
  return /^E: Failed to fetch \S+\s+(.*)$/m.exec(String(cause))?.[1] ?? message
}

/**
 * The tops of Debian's mirrors, without a slash.
 * @param printed what `apt-get update --print-uris` says, whatever the form of the sources
 */
export function parseDebianMirrors(printed: string, archive: 'main' | 'security' = 'main'): string[] {
  const tops = [...printed.matchAll(/^'([^']+)\/dists\/[^']*\/InRelease'/gm)].map(([, top = '']) => top)
  const isWanted = (top: string) => /debian/i.test(top) && /security/.test(top) === (archive === 'security')
  const mirrors = tops.filter(isWanted).flatMap(listMirrorsInFile)
  return [...new Set(mirrors)].filter((top) => /^(file|copy|(tor\+)?https?):/.test(top))
}

/** Cloud images name their mirrors in a file, which apt-helper cannot follow. */
function listMirrorsInFile(top: string): string[] {
  const file = /^mirror\+file:(?:\/\/)?(\/.*)$/.exec(top)?.[1]
  if (file === undefined) return [top]
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => /^[^\s#]+/.exec(line)?.[0].replace(/\/+$/, '') ?? [])
}
