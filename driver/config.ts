import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readText } from '../src/host/read-text.ts'
import { DEFAULT_CONFIG, type NodeConfig } from '../src/request/defaults.ts'

const DEFAULT_FILE = '/etc/modekeep/config.json'

function configFile(env: NodeJS.ProcessEnv): string {
  return env.MODEKEEP_CONFIG || DEFAULT_FILE
}

/** The node's configuration. No file is no fault: the defaults deny every bind source but modekeep's own directory. */
export async function readConfig(
  env: NodeJS.ProcessEnv,
): Promise<{ file: string; config: NodeConfig; faults: string[] }> {
  const file = configFile(env)
  const defaults = { ...DEFAULT_CONFIG, stateDir: realPath(DEFAULT_CONFIG.stateDir) }
  let text: string
  try {
    text = readText(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !env.MODEKEEP_CONFIG) return { file, config: defaults, faults: [] }
    return { file, config: defaults, faults: [`node configuration ${file} cannot be read (${code})`] }
  }
  const { parseConfig } = await import('../src/request/config.ts')
  const parsed = parseConfig(text, file)
  // Sources are compared with it, and theirs are real paths.
  return { file, ...parsed, config: { ...parsed.config, stateDir: realPath(parsed.config.stateDir) } }
}

/** What is not there yet has no links. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path === '/' ? path : join(realPath(dirname(path)), basename(path))
  }
}
