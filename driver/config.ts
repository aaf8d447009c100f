import type { NodeConfig } from '../src/request/defaults.ts'
import { readConfigFile } from '../src/request/read-config.ts'

const DEFAULT_FILE = '/etc/modekeep/config.json'

/** The configuration of this node. */
export async function readConfig({
  MODEKEEP_CONFIG,
}: NodeJS.ProcessEnv): Promise<{ file: string; config: NodeConfig; faults: string[] }> {
  const file = MODEKEEP_CONFIG || DEFAULT_FILE
  return { file, ...(await readConfigFile(file, Boolean(MODEKEEP_CONFIG))) }
}
