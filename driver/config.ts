import { type ConfigFile, readConfigFile } from '../src/request/read-config.ts'

const DEFAULT_CONFIG_FILE = '/etc/modekeep/config.json'

/** Reads this node's configuration. @param named a file to read in its place */
export async function readConfig(
  { MODEKEEP_CONFIG }: NodeJS.ProcessEnv,
  named = MODEKEEP_CONFIG,
): Promise<ConfigFile & { file: string }> {
  const file = named || DEFAULT_CONFIG_FILE
  return { file, ...(await readConfigFile(file, Boolean(named))) }
}
