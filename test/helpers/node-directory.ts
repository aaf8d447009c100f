import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { type MountRow, parseMountinfo, selectMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'

export const BINARY = resolve(import.meta.dirname, '../../dist/modekeep')

/** A node directory with a configuration of its own, on which the built binary is called as kubelet calls it. */
export class NodeDirectory {
  readonly top: string
  readonly volumes: string
  readonly state: string
  readonly log: string
  /** A program and its arguments, in front of the binary in every call. */
  wrapper: readonly string[] = []
  /** Variables of each call, in addition to the configuration's. */
  variables: Readonly<Record<string, string>> = {}

  constructor() {
    this.top = fs.mkdtempSync(`${tmpdir()}/modekeep-binary-`)
    this.volumes = `${this.top}/volumes`
    this.state = `${this.top}/state`
    this.log = `${this.top}/log/modekeep.log`
    fs.mkdirSync(this.volumes)
    const config = { stateDir: this.state, logFile: this.log, allow: [{ sources: [`${this.volumes}/*`] }] }
    fs.writeFileSync(`${this.top}/config.json`, JSON.stringify(config))
  }

  /** Unmounts and removes all of it. */
  close(): void {
    const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
    // The deepest first. The order of rows does not tell: a clone may be older than what it was attached in.
    const points = rows.map(({ mountPoint }) => mountPoint).filter((point) => point.startsWith(`${this.top}/`))
    for (const point of points.sort().reverse()) execFileSync('umount', ['--lazy', point])
    fs.rmSync(this.top, { recursive: true, force: true })
  }

  /** Changes keys of its configuration. */
  configure(more: object): void {
    const file = `${this.top}/config.json`
    fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), ...more }))
  }

  podDirectory(pod: string): string {
    const directory = `${this.top}/pods/${pod}/volumes/modekeep~fs/v`
    // Where a file is mounted there is one.
    if (!fs.existsSync(directory)) fs.mkdirSync(directory, { recursive: true, mode: 0o750 })
    return directory
  }

  /** The variables of a call. */
  environment(): Readonly<Record<string, string>> {
    return { MODEKEEP_CONFIG: `${this.top}/config.json`, ...this.variables }
  }

  start(args: readonly string[]): { child: ChildProcess; ended: Promise<{ text: string; code: number | null }> } {
    // One pipe for both streams, as kubelet's CombinedOutput has it.
    const child = spawn('/bin/sh', ['-c', 'exec "$@" 2>&1', 'sh', ...this.wrapper, BINARY, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: this.environment(),
    })
    let text = ''
    child.stdout.on('data', (data) => {
      text += data
    })
    const ended = new Promise<{ text: string; code: number | null }>((done) =>
      child.on('close', (code) => done({ text, code })),
    )
    return { child, ended }
  }

  /** Calls and reads the answer as kubelet does: all output is one JSON document, the exit status is 0. */
  async call(...args: string[]): Promise<{ status: string; message?: string }> {
    const { text, code } = await this.start(args).ended
    if (code !== 0 || !text.endsWith('}\n')) throw new Error(`exit ${code}: ${JSON.stringify(text)}`)
    return JSON.parse(text)
  }

  layers(pod: string): MountRow[] {
    return selectMountLayers(parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')), this.podDirectory(pod))
  }

  logLines(): Record<string, unknown>[] {
    const text = fs.readFileSync(this.log, 'utf8')
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  }

  /** Names of records and locks of mounts. */
  mountState(): string[] {
    return fs.existsSync(`${this.state}/mounts`) ? fs.readdirSync(`${this.state}/mounts`) : []
  }
}
