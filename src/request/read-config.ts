import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { headOf, nodeFs, openedRegular } from '../host/read-file.ts'
import { DEFAULT_CONFIG, type NodeConfig } from './defaults.ts'

/**
 * The node's configuration, and every fault in its file.
 * @param isNamed somebody named the file. Else no file is no fault: the defaults deny every bind source but
 *   modekeep's own directory
 */
export async function readConfigFile(
  file: string,
  isNamed: boolean,
): Promise<{ config: NodeConfig; faults: string[] }> {
  const defaults = { ...DEFAULT_CONFIG, stateDir: realPath(DEFAULT_CONFIG.stateDir) }
  let read: { text: string; fault: string | undefined }
  try {
    read = readTrusted(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !isNamed) return { config: defaults, faults: [] }
    const why = code === 'EINVAL' ? 'is no regular file: write one there' : `cannot be read (${code})`
    return { config: defaults, faults: [`node configuration ${file} ${why}`] }
  }
  const { text, fault } = read
  if (fault !== undefined) return { config: defaults, faults: [`node configuration ${file} ${fault}`] }
  // A call without a configuration file does not load it.
  const { parseConfig } = await import('./config.ts')
  const parsed = parseConfig(text, file)
  // Sources are compared with it, and theirs are real paths.
  return { ...parsed, config: { ...parsed.config, stateDir: realPath(parsed.config.stateDir) } }
}

const LARGEST = 1 << 20
const OTHERS_WRITE = 0o022

/**
 * Whoever can write the file decides what root mounts and runs: it belongs to root, or to the user that modekeep runs as,
 * and nobody else can write it. The file that is looked at is the one that is read.
 * @returns with `fault`, why it is not believed, and the way out
 */
function readTrusted(file: string): { text: string; fault: string | undefined } {
  using opened = openedRegular(nodeFs, file)
  const { uid, mode } = opened.stat
  const permissions = (mode & 0o7777).toString(8).padStart(4, '0')
  const refused = (why: string, way: string) => ({ text: '', fault: `${why}, so it is not used: ${way}` })
  if (uid !== 0 && uid !== process.geteuid?.()) {
    return refused(`belongs to uid ${uid} (mode ${permissions})`, `chown root ${file}, after a look at what is in it`)
  }
  if ((mode & OTHERS_WRITE) !== 0) {
    const who = `can be written by others than its owner (mode ${permissions}, uid ${uid})`
    return refused(who, `chmod go-w ${file}, after a look at what is in it`)
  }
  const bytes = headOf(nodeFs, opened.fd, LARGEST + 1)
  if (bytes.length > LARGEST) return refused('is larger than 1 MiB', 'write a configuration there')
  return { text: bytes.toString(), fault: undefined }
}

/** What is not there yet has no links. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === '/' ? path : join(realPath(dirname(path)), basename(path))
  }
}
