import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createFault, type Fault, prefixFault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { readOwnedFile } from '../kernel/read-file.ts'
import { DEFAULT_CONFIG, type LoadedConfig, type NodeConfig } from './defaults.ts'

export interface ConfigFile {
  config: LoadedConfig
  faults: Fault[]
  /** The file exists and cannot be read, so the state directory may also differ from the default. */
  isUnreadable?: true
}

const DEFAULT_CONFIG_FILE = '/etc/modekeep/config.json'

/** Reads this node's configuration, and every fault in its file. @param named a file to read in its place */
export async function readConfig(
  { MODEKEEP_CONFIG }: Readonly<Record<string, string | undefined>>,
  named = MODEKEEP_CONFIG,
): Promise<ConfigFile & { file: string }> {
  const file = named || DEFAULT_CONFIG_FILE
  return { file, ...(await readConfigFile(file, Boolean(named))) }
}

/**
 * Reads the node's configuration, and every fault in its file.
 * @param isExplicit the file was named explicitly. Otherwise a missing file is no fault, because the defaults deny
 * every bind source but modekeep's own directory
 */
export async function readConfigFile(file: string, isExplicit: boolean): Promise<ConfigFile> {
  const withDefaults = (): LoadedConfig => ({
    ...DEFAULT_CONFIG,
    stateDir: resolveRealPath(DEFAULT_CONFIG.stateDir),
    configFile: file,
  })
  let bytes: Buffer | undefined
  try {
    bytes = readOwnedFile(file)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return {
      config: withDefaults(),
      faults: error.faults.map((fault) => prefixFault(fault, 'node configuration ')),
      isUnreadable: true,
    }
  }
  if (bytes === undefined) {
    if (!isExplicit) return { config: withDefaults(), faults: [] }
    return {
      config: withDefaults(),
      faults: [createFault('config-invalid', `node configuration ${file} cannot be read (ENOENT)`)],
      isUnreadable: true,
    }
  }
  const parsed = await parseConfigCached(file, bytes.toString())
  // Sources are compared with stateDir, and their paths are resolved, too.
  return {
    ...parsed,
    config: { ...parsed.config, stateDir: resolveRealPath(parsed.config.stateDir), configFile: file },
  }
}

type ParsedConfig = { config: NodeConfig; faults: Fault[] }

/** A process that reads the configuration for each of its tasks mostly finds the same text. */
let cachedConfig: { file: string; text: string; parsed: ParsedConfig } | undefined

async function parseConfigCached(file: string, text: string): Promise<ParsedConfig> {
  if (cachedConfig?.file !== file || cachedConfig.text !== text) {
    // A call without a configuration file does not load the parser.
    const { parseConfig } = await import('./config.ts')
    cachedConfig = { file, text, parsed: parseConfig(text, file) }
  }
  return cachedConfig.parsed
}

/** A path that does not exist yet has no links. */
function resolveRealPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === '/' ? path : join(resolveRealPath(dirname(path)), basename(path))
  }
}
