import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { PLUGINS } from './kubelet.ts'
import { DRIVERS } from './manifest.ts'

export const ROOT = resolve(import.meta.dirname, '../../..')
export const BINARY = `${ROOT}/dist/modekeep`
export const INSTALLED = `${PLUGINS}/modekeep~fs/fs`
export const MODEKEEPS_LOG = '/var/log/modekeep/modekeep.log'
export const MODEKEEPS_STATE = '/var/lib/modekeep'
const NAIVE = resolve(import.meta.dirname, 'naive.sh')

/** Installs modekeep as on any node; the script finds the plugin directory by the kubelet that runs. Returns its words. */
export function install(binary = BINARY): string {
  const said = execFileSync(`${ROOT}/install.sh`, ['--binary', binary], { encoding: 'utf8' })
  if (!fs.existsSync(INSTALLED)) throw new Error(`install.sh has put the driver elsewhere:\n${said}`)
  return said
}

export function installNaive(): void {
  const [vendor, name] = DRIVERS.naive.split('/')
  const staged = `${PLUGINS}/.${vendor}~${name}`
  fs.mkdirSync(staged)
  fs.copyFileSync(NAIVE, `${staged}/${name}`)
  fs.chmodSync(`${staged}/${name}`, 0o755)
  fs.renameSync(staged, `${PLUGINS}/${vendor}~${name}`)
}

export interface LogLine {
  level: string
  verb?: string
  directory?: string
  outcome?: string
  error?: string
  message?: string
}

/** What modekeep has logged of its calls. */
export function modekeepsLog(): LogLine[] {
  if (!fs.existsSync(MODEKEEPS_LOG)) return []
  const lines = fs.readFileSync(MODEKEEPS_LOG, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}
