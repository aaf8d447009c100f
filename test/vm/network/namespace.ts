import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { isListening } from '../../helpers/ports.ts'
import type { ServerPlace } from '../../volume/servers.ts'

const NAMESPACE = 'server'
const CLIENT_ADDRESS = '10.9.0.1'
export const SERVER_ADDRESS = '10.9.0.2'

/** Starts a command among the servers: another network namespace, which a pair of virtual cards joins to this one. */
export const IN_SERVER_NETWORK: ServerPlace = {
  address: SERVER_ADDRESS,
  command: ['ip', 'netns', 'exec', NAMESPACE],
}

const ip = (...args: string[]) => execFileSync('ip', args)

const RPCBIND_PORT = 111
let rpcbind: ChildProcess | undefined

/** Servers of NFS 3 end if they find no rpcbind. */
async function startRpcbind(): Promise<void> {
  rpcbind = spawn('ip', ['netns', 'exec', NAMESPACE, 'rpcbind', '-f'], { stdio: 'ignore' })
  while (!(await isListening(RPCBIND_PORT, SERVER_ADDRESS))) await new Promise((done) => setTimeout(done, 50))
}

export async function createServerNetwork(): Promise<void> {
  ip('netns', 'add', NAMESPACE)
  ip('link', 'add', 'client', 'type', 'veth', 'peer', 'name', 'server')
  ip('link', 'set', 'server', 'netns', NAMESPACE)
  ip('addr', 'add', `${CLIENT_ADDRESS}/24`, 'dev', 'client')
  ip('link', 'set', 'client', 'up')
  ip('-n', NAMESPACE, 'addr', 'add', `${SERVER_ADDRESS}/24`, 'dev', 'server')
  ip('-n', NAMESPACE, 'link', 'set', 'server', 'up')
  ip('-n', NAMESPACE, 'link', 'set', 'lo', 'up')
  await startRpcbind()
}

export function removeServerNetwork(): void {
  rpcbind?.kill('SIGKILL')
  ip('link', 'del', 'client')
  ip('netns', 'del', NAMESPACE)
}

/** The servers get nothing from this node any more, and cannot reply: as behind a cable that is cut in the middle. */
export function cutNetwork(): void {
  ip('-n', NAMESPACE, 'route', 'add', 'blackhole', `${CLIENT_ADDRESS}/32`)
}

export function joinNetwork(): void {
  ip('-n', NAMESPACE, 'route', 'del', 'blackhole', `${CLIENT_ADDRESS}/32`)
}
