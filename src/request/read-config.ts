import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readOwned } from '../host/owned-file.ts'
import { Refusal } from '../refusal/refusal.ts'
import { DEFAULT_CONFIG, type LoadedConfig, type NodeConfig } from './defaults.ts'

export interface ReadConfig {
  config: LoadedConfig
  faults: string[]
  /** There is one, and nothing of it is known: also the state directory may be another one than the default. */
  isUnread?: true
}

/**
 * The node's configuration, and every fault in its file.
 * @param isNamed somebody named the file. Else no file is no fault: the defaults deny every bind source but
 *   modekeep's own directory
 */
export async function readConfigFile(file: string, isNamed: boolean): Promise<ReadConfig> {
  const defaults = { ...DEFAULT_CONFIG, stateDir: realPath(DEFAULT_CONFIG.stateDir), configFile: file }
  let bytes: Buffer | undefined
  try {
    bytes = readOwned(file)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { config: defaults, faults: [`node configuration ${error.message}`], isUnread: true }
  }
  if (bytes === undefined) {
    if (!isNamed) return { config: defaults, faults: [] }
    return { config: defaults, faults: [`node configuration ${file} cannot be read (ENOENT)`], isUnread: true }
  }
  const parsed = await parsedOnce(file, bytes.toString())
  // Sources are compared with it, and theirs are real paths.
  return { ...parsed, config: { ...parsed.config, stateDir: realPath(parsed.config.stateDir), configFile: file } }
}

type Parsed = { config: NodeConfig; faults: string[] }

/** Of a process that reads it for each of its jobs: most find the same text. */
let last: { file: string; text: string; parsed: Parsed } | undefined

async function parsedOnce(file: string, text: string): Promise<Parsed> {
  if (last?.file !== file || last.text !== text) {
    // A call without a configuration file does not load it.
    const { parseConfig } = await import('./config.ts')
    last = { file, text, parsed: parseConfig(text, file) }
  }
  return last.parsed
}

/** What is not there yet has no links. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === '/' ? path : join(realPath(dirname(path)), basename(path))
  }
}
