import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { onTestFinished } from 'vitest'
import { requireProgram } from './needs.ts'
import { findFreePort, isListening } from './ports.ts'

export const base64 = (text: string) => Buffer.from(text).toString('base64')

/** OpenSSH's server on loopback, with keys of its own; ended with its test. */
export class SshServer {
  readonly top: string
  readonly port: number
  readonly shared: string
  /** The private key that root may come with. */
  readonly key: string
  readonly knownHosts: string
  /** Another server's, under this one's name. */
  readonly otherHost: string
  #process: ChildProcess | undefined

  static async start(top: string, port?: number): Promise<SshServer> {
    const server = new SshServer(`${top}/ssh`, port ?? (await findFreePort()))
    await server.#run()
    return server
  }

  private constructor(top: string, port: number) {
    this.top = top
    this.port = port
    this.shared = `${top}/shared`
    this.key = `${top}/user`
    fs.mkdirSync(this.shared, { recursive: true })
    // The server permits no access to a directory that only root can pass.
    for (let above = top; above !== '/tmp' && above !== '/'; above = above.slice(0, above.lastIndexOf('/')) || '/')
      fs.chmodSync(above, 0o755)
    for (const name of ['user', 'host', 'other'])
      execFileSync(requireProgram('ssh-keygen'), ['-q', '-t', 'ed25519', '-N', '', '-f', `${top}/${name}`])
    const line = (name: string) => `[127.0.0.1]:${port} ${fs.readFileSync(`${top}/${name}.pub`, 'utf8')}`
    this.knownHosts = line('host')
    this.otherHost = line('other')
  }

  async #run(): Promise<void> {
    const config = {
      Port: this.port,
      ListenAddress: '127.0.0.1',
      HostKey: `${this.top}/host`,
      AuthorizedKeysFile: `${this.top}/user.pub`,
      PidFile: 'none',
      StrictModes: 'no',
      UsePAM: 'no',
      PermitRootLogin: 'yes',
      PasswordAuthentication: 'yes',
      Subsystem: 'sftp internal-sftp',
    }
    const text = Object.entries(config).map(([name, value]) => `${name} ${value}\n`)
    fs.writeFileSync(`${this.top}/config`, text.join(''))
    fs.mkdirSync('/run/sshd', { recursive: true })
    const sshd = execFileSync('which', [requireProgram('sshd')], { encoding: 'utf8' }).trim()
    const child = spawn(sshd, ['-D', '-e', '-f', `${this.top}/config`], { stdio: ['ignore', 'ignore', 'pipe'] })
    this.#process = child
    onTestFinished(() => this.#stop())
    let said = ''
    child.stderr.on('data', (data) => {
      said += data
    })
    while (!(await isListening(this.port))) {
      if (child.exitCode !== null) throw new Error(`sshd: ${said}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** A user of this run's mount namespace only, who may come with a password. */
  addUser(name: string, password: string): void {
    const crypt = ['-e', 'print crypt($ENV{PASSWORD}, q($6$modekeep))']
    const hash = execFileSync('perl', crypt, { env: { ...process.env, PASSWORD: password }, encoding: 'utf8' })
    const lines = { passwd: `${name}:x:4711:4711::/:/bin/sh\n`, shadow: `${name}:${hash}:19000:0:99999:7:::\n` }
    for (const [file, line] of Object.entries(lines)) {
      fs.copyFileSync(`/etc/${file}`, `${this.top}/${file}`)
      fs.appendFileSync(`${this.top}/${file}`, line)
      execFileSync('mount', ['--bind', `${this.top}/${file}`, `/etc/${file}`])
      onTestFinished(() => void execFileSync('umount', [`/etc/${file}`]))
    }
    fs.chmodSync(this.shared, 0o755)
    fs.chmodSync(`${this.shared}/a`, 0o644)
  }

  /** From now on no client gets an answer, nor an error. */
  freeze(): void {
    for (const pid of this.#family()) tell(pid, 'SIGSTOP')
  }

  #stop(): void {
    for (const pid of this.#family()) tell(pid, 'SIGKILL')
  }

  /** The server and all that it started for its clients. */
  #family(): number[] {
    if (this.#process?.pid === undefined) return []
    const family = new Set([this.#process.pid])
    const parents = fs.readdirSync('/proc').flatMap((pid) => {
      if (!/^\d+$/.test(pid)) return []
      return [[Number(pid), Number(/\) \S (\d+)/.exec(statOf(pid))?.[1])] as const]
    })
    for (const parent of family) for (const [pid, ppid] of parents) if (ppid === parent) family.add(pid)
    return [...family]
  }
}

/** A process that has ended meanwhile needs to be told nothing. */
function tell(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function statOf(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return ''
  }
}
