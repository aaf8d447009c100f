import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { IN_SERVER_NETWORK, SERVER_ADDRESS } from './namespace.ts'
import { requireEnvironment } from './node.ts'

export const NFS_VERSIONS = ['3', '4.2'] as const
export type NfsVersion = (typeof NFS_VERSIONS)[number]

const EXPORTS = { rw: 'rw,no_root_squash', squash: 'rw,root_squash', readonly: 'ro,no_root_squash' } as const
export type ExportName = keyof typeof EXPORTS
const MOUNTD_PORT = 20048

/** The kernel's own NFS server, with three exports on an ext4. */
export class KernelNfsServer {
  /** The directory that has the exports, as the server's own processes see it. */
  readonly root: string
  readonly #sbin: string
  readonly #libraries: string

  constructor(root: string) {
    const servers = requireEnvironment('MODEKEEP_LAB_SERVERS')
    this.root = root
    this.#sbin = `${servers}/usr/sbin`
    this.#libraries = fs
      .readdirSync(`${servers}/usr/lib`)
      .map((name) => `${servers}/usr/lib/${name}`)
      .join(':')
  }

  async start(): Promise<void> {
    const image = `${this.root}.img`
    fs.mkdirSync(this.root)
    execFileSync('truncate', ['-s', '256M', image])
    execFileSync('mkfs.ext4', ['-q', image])
    execFileSync('mount', ['-o', 'loop', image, this.root])
    for (const name of Object.keys(EXPORTS)) {
      fs.mkdirSync(`${this.root}/${name}`)
      // An export that is no mount point has the options of the export above it.
      execFileSync('mount', ['--bind', `${this.root}/${name}`, `${this.root}/${name}`])
    }
    fs.mkdirSync('/var/lib/nfs', { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', 'nfs', '/var/lib/nfs'])
    for (const file of ['/var/lib/nfs/etab', '/var/lib/nfs/rmtab', '/etc/exports'])
      fs.writeFileSync(file, '', { flag: 'a' })
    this.#export('rw,no_root_squash,fsid=0', this.root)
    for (const [at, [name, options]] of Object.entries(EXPORTS).entries())
      this.#export(`${options},fsid=${at + 1}`, `${this.root}/${name}`)
    this.#run(`${this.#sbin}/rpc.mountd -p ${MOUNTD_PORT}`)
    this.#run(`${this.#sbin}/rpc.nfsd -G 10 -L 10 4`)
  }

  #export(options: string, directory: string): void {
    this.#run(`${this.#sbin}/exportfs -o ${options},no_subtree_check,insecure '*:${directory}'`)
  }

  #run(command: string): void {
    const [first = '', ...others] = IN_SERVER_NETWORK.command
    const env = { ...process.env, LD_LIBRARY_PATH: this.#libraries }
    execFileSync(first, [...others, 'sh', '-c', `mount -t nfsd nfsd /proc/fs/nfsd; ${command}`], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }

  stop(): void {
    this.#run(`${this.#sbin}/rpc.nfsd 0; ${this.#sbin}/exportfs -au`)
    for (const name of [...Object.keys(EXPORTS), '']) execFileSync('umount', ['-l', `${this.root}/${name}`])
    execFileSync('umount', ['-l', '/var/lib/nfs'])
  }

  /** The server's own path of a directory below an export, which is made there. */
  make(name: ExportName, directory: string, files: number): string {
    const path = `${this.root}/${name}/${directory}`
    makeFiles(path, files)
    return path
  }

  source(version: NfsVersion, name: ExportName, directory: string): string {
    return `${SERVER_ADDRESS}:${version === '3' ? this.root : ''}/${name}/${directory}`
  }

  options(version: NfsVersion, more = ''): string {
    return formatNfsOptions(version, 2049, MOUNTD_PORT, more)
  }
}

/** Options of a mount that reaches a server without rpcbind and rpc.statd of the node. */
export function formatNfsOptions(version: NfsVersion, port: number, mountPort: number, more = ''): string {
  const only3 = version === '3' ? `,nolock,mountport=${mountPort},mountproto=tcp` : ''
  return `vers=${version},proto=tcp,port=${port}${only3}${more && `,${more}`}`
}

/** Makes a directory with some files of group 100, the last of them in a directory below. */
export function makeFiles(path: string, files: number): void {
  fs.mkdirSync(`${path}/below`, { recursive: true })
  for (let at = 0; at < files; at++)
    fs.writeFileSync(`${path}/${at === files - 1 ? 'below/' : ''}file${at}`, 'content\n')
  execFileSync('chgrp', ['-R', '100', path])
}
