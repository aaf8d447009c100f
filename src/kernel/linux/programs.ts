import { accessSync, constants, statSync } from 'node:fs'
import { createFault } from '../../errors/fault.ts'
import { HelperError } from '../helpers.ts'
import { hasCallSucceeded, tolerateSystemErrors } from '../system-error.ts'

/** Maps programs to their Debian package, and to the RPM package if its name differs. */
const PROGRAM_PACKAGES: Readonly<Record<string, readonly [debian: string, rpm?: string]>> = {
  'mount.nfs': ['nfs-common', 'nfs-utils'],
  'mount.nfs4': ['nfs-common', 'nfs-utils'],
  'mount.cifs': ['cifs-utils'],
  fusermount3: ['fuse3'],
  archivemount: ['archivemount'],
  bindfs: ['bindfs'],
  borgfs: ['borgbackup'],
  'ceph-fuse': ['ceph-fuse'],
  cryfs: ['cryfs'],
  encfs: ['encfs', 'fuse-encfs'],
  'fuse-overlayfs': ['fuse-overlayfs'],
  'fuse-zip': ['fuse-zip'],
  fuse2fs: ['fuse2fs'],
  fuseiso: ['fuseiso'],
  glusterfs: ['glusterfs-client', 'glusterfs-fuse'],
  gocryptfs: ['gocryptfs'],
  httpfs2: ['httpfs2'],
  lxcfs: ['lxcfs'],
  mergerfs: ['mergerfs'],
  'ntfs-3g': ['ntfs-3g'],
  rclone: ['rclone'],
  rclonefs: ['rclone and link it (ln -s rclone /usr/bin/rclonefs)'],
  s3fs: ['s3fs', 's3fs-fuse'],
  squashfuse: ['squashfuse'],
  squashfuse_ll: ['squashfuse'],
  sshfs: ['sshfs', 'fuse-sshfs'],
  'unionfs-fuse': ['unionfs-fuse'],
}

/** Formats the package for messages. Returns undefined for a program without a known package. */
export function formatProgramPackage(program: string): string | undefined {
  const [debian, rpm] = Object.hasOwn(PROGRAM_PACKAGES, program) ? (PROGRAM_PACKAGES[program] ?? []) : []
  return rpm === undefined ? debian : `${debian} (Debian) or ${rpm} (RPM)`
}

/** The directories of the node's packages. No environment variable decides what runs as root. */
export const SYSTEM_PROGRAM_DIRECTORIES: readonly string[] = [
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
  '/usr/local/sbin',
  '/usr/local/bin',
]

/** @throws {HelperError} with the package that contains it */
export function findProgram(program: string, path: readonly string[]): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._+-]*$/.test(program))
    throw new Error(`the program name ${program} is not a bare file name`)
  const files = path.map((directory) => `${directory}/${program}`).filter(isFile)
  const executable = files.find(isExecutableFile)
  if (executable !== undefined) return executable
  if (files[0] !== undefined)
    throw new HelperError(createFault('program-missing', `${files[0]} is not executable`, 'install its package again'))
  const packageName = formatProgramPackage(program)
  throw new HelperError(
    createFault(
      'program-missing',
      `${program} is not on this node`,
      packageName === undefined ? 'install it' : `install the package ${packageName}`,
      `it is looked for in ${path.join(', ')}`,
    ),
  )
}

function isFile(path: string): boolean {
  return tolerateSystemErrors(() => statSync(path).isFile()) ?? false
}

export function isExecutableFile(path: string): boolean {
  return isFile(path) && hasCallSucceeded(() => accessSync(path, constants.X_OK))
}
