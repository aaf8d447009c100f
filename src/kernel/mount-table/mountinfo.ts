import { DIRECTORY_TYPE, type Handle, type Host, type Stat } from '../host.ts'

/** One row of /proc/PID/mountinfo. Paths are unescaped; bytes that are not UTF-8 read as U+FFFD. */
export interface MountRow {
  id: number
  parent: number
  device: string
  /** The mounted part of its file system. It ends in `//deleted` after that part was deleted. */
  root: string
  mountPoint: string
  options: string[]
  /** The tags `shared:N`, `master:N`, … */
  propagation: string[]
  fsType: string
  source: string
  superOptions: string[]
}

/**
 * proc_pid_mountinfo(5): id, parent, major:minor, root, mount point, options, zero or more tags, "-", type, source,
 * super options. An empty source leaves two spaces; super options are always present.
 */
const MOUNTINFO_ROW_PATTERN = /^(\d+) (\d+) (\d+:\d+) ([^ ]+) ([^ ]+) ([^ ]+) ((?:[^ ]+ )*?)- ([^ ]*) ([^ ]*) ([^ ]*)/

/** Reads the text of mountinfo. @throws {Error} which quotes the invalid line */
export function parseMountinfo(text: string): MountRow[] {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const fields = MOUNTINFO_ROW_PATTERN.exec(line)
    if (fields === null) throw new Error(`mountinfo line not understood: ${JSON.stringify(line)}`)
    const [, id, parent, device = '', root = '', mountPoint = '', options = '', tags = '', ...rest] = fields
    const [fsType = '', source = '', superOptions = ''] = rest
    return {
      id: Number(id),
      parent: Number(parent),
      device,
      root: unescapeMountinfoField(root),
      mountPoint: unescapeMountinfoField(mountPoint),
      options: options.split(','),
      propagation: tags.split(' ').slice(0, -1),
      fsType,
      source: unescapeMountinfoField(source),
      superOptions: superOptions.split(','),
    }
  })
}

/** Finds the row of one mount in the text of mountinfo without parsing the other rows. */
function findMountRowById(text: string, id: number): MountRow | undefined {
  const start = `\n${text}`.indexOf(`\n${id} `)
  return start === -1 ? undefined : parseMountinfo(text.slice(start, text.indexOf('\n', start) + 1))[0]
}

/** Finds the rows of one file system, given as major:minor, without parsing other rows. */
export function findDeviceMountRows(text: string, device: string): MountRow[] {
  const lines = text.split('\n').filter((line) => line.includes(` ${device} `))
  return parseMountinfo(lines.join('\n')).filter((row) => row.device === device)
}

// The kernel writes space, tab, newline and backslash as three octal digits (fs/proc_namespace.c).
function unescapeMountinfoField(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/**
 * Selects the mounts at one directory, the lowest first. The table lists mounts by age, and a mount that was put beneath
 * another is the younger one.
 */
export function selectMountLayers(rows: readonly MountRow[], directory: string): MountRow[] {
  return orderMountLayers(rows.filter((row) => row.mountPoint === directory))
}

/** Orders the mounts of one directory, the lowest first. Each is visited once. */
function orderMountLayers(layers: readonly MountRow[]): MountRow[] {
  const ids = new Set(layers.map(({ id }) => id))
  const above = Map.groupBy(layers, ({ parent }) => parent)
  const stacked = new Set(layers.filter(({ id, parent }) => parent === id || !ids.has(parent)))
  // The iteration of a set includes elements that are added during it.
  for (const below of stacked) {
    for (const row of above.get(below.id) ?? []) stacked.add(row)
  }
  return [...stacked]
}

/** Maps each mount id to the offset of its first line. */
function indexLineStarts(text: string): Map<number, number> {
  const starts = new Map<number, number>()
  for (let start = 0; start < text.length; start = findLineEnd(text, start)) {
    const id = Number.parseInt(text.slice(start, start + 12), 10)
    if (!starts.has(id)) starts.set(id, start)
  }
  return starts
}

function findLineEnd(text: string, start: number): number {
  const end = text.indexOf('\n', start)
  return end === -1 ? text.length : end + 1
}

/** Reads the type of the file system that a handle is on, as in mountinfo. Returns undefined if the mount table has no row of it. */
export function readFileSystemType({ inodes, mounts }: Host, handle: Handle): string | undefined {
  const known = inodes.typeOfMount(inodes.statMountPoint(handle).mountId)
  if (known !== undefined) return known
  return findMountRow(mounts, handle)?.fsType
}

/** Finds the row of the mount that a handle is on. Returns undefined if the table has no such row: a detached mount has none. */
export function findMountRow(mounts: Host['mounts'], handle: Handle): MountRow | undefined {
  return findMountRowById(mounts.table(), mounts.tableId(handle))
}

/** File systems that are interfaces to the kernel: an owner there decides who may use the interface, and no data is stored. */
const KERNEL_INTERFACE_FS_TYPES = new Set(
  `autofs binder binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs functionfs fusectl mqueue nfsd
   nsfs proc pstore resctrl rpc_pipefs securityfs selinuxfs smackfs sysfs tracefs`.split(/\s+/),
)

export const isKernelInterfaceFsType = (fsType: string | undefined): boolean =>
  fsType !== undefined && KERNEL_INTERFACE_FS_TYPES.has(fsType)

/** A snapshot of the mount table, which is read at its first use. */
export interface MountTableSnapshot {
  text(): string
  findRow(id: number): MountRow | undefined
}

export function snapshotMountTable({ mounts }: Pick<Host, 'mounts'>): MountTableSnapshot {
  let text: string | undefined
  let queries = 0
  let starts: Map<number, number> | undefined
  const read = () => {
    text ??= mounts.table()
    return text
  }
  return {
    text: read,
    findRow(id) {
      queries++
      // A search finds a single row faster than an index.
      if (queries === 1) return findMountRowById(read(), id)
      starts ??= indexLineStarts(read())
      const start = starts.get(id)
      return start === undefined ? undefined : parseMountinfo(read().slice(start, findLineEnd(read(), start)))[0]
    },
  }
}

/** Returns the mounts at a path, the lowest first. Reads the complete mount table. */
export function readMountLayers(host: Host, path: string): MountRow[] {
  return selectMountLayers(parseMountinfo(host.mounts.table()), path)
}

/** A file system without space for a single inode is a guard: no volume has one. */
export const GUARD_MOUNT_OPTIONS = ['ro', 'mode=0000', 'nr_inodes=1', 'size=4k']

/** Checks whether the topmost mount at a path is a guard, which means that no volume is mounted there. */
export function isGuardMount(host: Host, path: string, { mode, mountRoot }: Stat): boolean {
  // A guard's root has no permissions. This cheap check avoids reading a long mount table for most mounts.
  const isCandidate = mountRoot && mode === DIRECTORY_TYPE
  return isCandidate && readMountLayers(host, path).slice(-1).some(isGuardMountRow)
}

export function hasGuardMount(host: Host, path: string): boolean {
  return readMountLayers(host, path).some(isGuardMountRow)
}

function isGuardMountRow({ fsType, source, superOptions }: MountRow): boolean {
  const isEmpty = ['ro', 'nr_inodes=1'].every((option) => superOptions.includes(option))
  return fsType === 'tmpfs' && source === 'modekeep' && isEmpty
}
