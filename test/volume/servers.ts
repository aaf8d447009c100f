import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { onTestFinished } from 'vitest'
import { requireProgram } from '../helpers/needs.ts'
import { findFreePort, isListening } from '../helpers/ports.ts'

/** A server of a Debian package on loopback, ended with the test. */
export interface Server {
  port: number
  /** What it shares. */
  shared: string
  /** For other files of the test. */
  top: string
  /** The leader of its process group. */
  pid: number
}

/** Where a server runs. */
export interface ServerPlace {
  address: string
  /** A program and its arguments that start a command there. */
  command: readonly string[]
}

const LOOPBACK: ServerPlace = { address: '127.0.0.1', command: [] }

function prepare(): { top: string; shared: string } {
  const top = fs.mkdtempSync(`${tmpdir()}/modekeep-server-`)
  fs.chmodSync(top, 0o755)
  const shared = `${top}/shared`
  fs.mkdirSync(shared)
  onTestFinished(() => fs.rmSync(top, { recursive: true, force: true }))
  return { top, shared }
}

/**
 * Starts it in a group of its own, which is ended by its id, and waits until it listens.
 * @returns the group's leader
 */
async function serve(
  { address, command }: ServerPlace,
  program: string,
  args: readonly string[],
  port: number,
  log: string,
): Promise<number> {
  const [first = '', ...others] = [...command, program, ...args]
  const child = spawn(first, others, { stdio: 'ignore', detached: true })
  const ended = new Promise((done) => child.once('exit', done).once('error', done))
  onTestFinished(async () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    await ended
  })
  for (;;) {
    if (child.exitCode !== null || child.pid === undefined) {
      throw new Error(
        `${program} did not start: ${fs.existsSync(log) ? fs.readFileSync(log, 'utf8').slice(-2000) : ''}`,
      )
    }
    if (await isListening(port, address)) return child.pid
    await new Promise((done) => setTimeout(done, 50))
  }
}

/** Samba with one share, "share", for one user, root. */
export async function startSamba(password: string, place = LOOPBACK): Promise<Server> {
  const { top, shared } = prepare()
  const port = await findFreePort()
  const directories = [
    'private dir',
    'lock directory',
    'state directory',
    'cache directory',
    'pid directory',
    'ncalrpc dir',
  ]
  for (const name of directories) fs.mkdirSync(`${top}/${name.split(' ')[0]}`)
  fs.writeFileSync(
    `${top}/smb.conf`,
    [
      '[global]',
      ...['server role = standalone server', `interfaces = ${place.address}`, 'bind interfaces only = yes'],
      ...[`smb ports = ${port}`, 'disable netbios = yes', 'disable spoolss = yes', 'load printers = no'],
      ...directories.map((name) => `${name} = ${top}/${name.split(' ')[0]}`),
      ...[`passdb backend = tdbsam:${top}/passdb.tdb`, `log file = ${top}/log`],
      ...['[share]', `path = ${shared}`, 'read only = no', ''],
    ].join('\n'),
  )
  execFileSync(requireProgram('smbpasswd'), ['-c', `${top}/smb.conf`, '-s', '-a', 'root'], {
    input: `${password}\n${password}\n`,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const pid = await serve(place, 'smbd', ['-F', '--no-process-group', '-s', `${top}/smb.conf`], port, `${top}/log`)
  return { port, shared, top, pid }
}

/** nfs-ganesha with one export: "/export" for version 4; its path and `mountPort`, if that is given, for version 3 too. */
export async function startGanesha(
  squash: 'root_squash' | 'no_root_squash',
  place = LOOPBACK,
  mountPort?: number,
): Promise<Server> {
  const { top, shared } = prepare()
  const port = await findFreePort()
  const protocols = mountPort === undefined ? 'Protocols = 4;' : `Protocols = 3,4; MNT_Port = ${mountPort};`
  fs.writeFileSync(
    `${top}/ganesha.conf`,
    [
      `NFS_CORE_PARAM { ${protocols} NFS_Port = ${port}; Enable_UDP = false; Bind_addr = ${place.address}; Enable_NLM = false; Enable_RQUOTA = false; }`,
      `NFSv4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = ${top}; }`,
      `EXPORT { Export_Id = 1; Path = ${shared}; Pseudo = /export; Access_Type = RW; Squash = ${squash}; SecType = sys; FSAL { Name = VFS; } }`,
    ].join('\n'),
  )
  const args = ['-F', '-f', `${top}/ganesha.conf`, '-L', `${top}/log`, '-p', `${top}/pid`]
  const pid = await serve(place, 'ganesha.nfsd', args, port, `${top}/log`)
  // It listens seconds before it knows its exports.
  while (!fs.readFileSync(`${top}/log`, 'utf8').includes('NFS SERVER INITIALIZED'))
    await new Promise((done) => setTimeout(done, 50))
  return { port, shared, top, pid }
}
