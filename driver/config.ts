import type { NodeConfig } from '../src/request/defaults.ts'
import { readConfigFile } from '../src/request/read-config.ts'

const DEFAULT_FILE = '/etc/modekeep/config.json'

/** The configuration of this node. @param named a file in place of it */
export async function readConfig(
  { MODEKEEP_CONFIG }: NodeJS.ProcessEnv,
  named = MODEKEEP_CONFIG,
): Promise<{ file: string; config: NodeConfig; faults: string[] }> {
  const file = named || DEFAULT_FILE
  return { file, ...(await readConfigFile(file, Boolean(named))) }
}
