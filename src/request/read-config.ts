import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readText } from '../host/read-file.ts'
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
  let text: string
  try {
    text = readText(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !isNamed) return { config: defaults, faults: [] }
    return { config: defaults, faults: [`node configuration ${file} cannot be read (${code})`] }
  }
  // A call without a configuration file does not load it.
  const { parseConfig } = await import('./config.ts')
  const parsed = parseConfig(text, file)
  // Sources are compared with it, and theirs are real paths.
  return { ...parsed, config: { ...parsed.config, stateDir: realPath(parsed.config.stateDir) } }
}

/** What is not there yet has no links. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === '/' ? path : join(realPath(dirname(path)), basename(path))
  }
}
