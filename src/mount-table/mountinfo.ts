/** One row of /proc/PID/mountinfo. Paths are unescaped; bytes that are not UTF-8 read as U+FFFD. */
export interface MountRow {
  id: number
  parent: number
  device: string
  /** The part of its file system that is mounted; ends in `//deleted` when that is gone. */
  root: string
  mountPoint: string
  options: string[]
  /** `shared:N`, `master:N`, … */
  propagation: string[]
  fsType: string
  source: string
  superOptions: string[]
}

/**
 * proc_pid_mountinfo(5): id, parent, major:minor, root, mount point, options, zero or more tags, "-", type, source,
 * super options. A source may be empty, which leaves two spaces; super options are missing nowhere.
 */
const ROW = /^(\d+) (\d+) (\d+:\d+) ([^ ]+) ([^ ]+) ([^ ]+) ((?:[^ ]+ )*?)- ([^ ]*) ([^ ]*) ([^ ]*)/

/** Reads the text of mountinfo. @throws {Error} quoting the line that does not fit */
export function parseMountinfo(text: string): MountRow[] {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => {
    const fields = ROW.exec(line)
    if (fields === null) throw new Error(`mountinfo line not understood: ${JSON.stringify(line)}`)
    const [, id, parent, device = '', root = '', mountPoint = '', options = '', tags = '', ...rest] = fields
    const [fsType = '', source = '', superOptions = ''] = rest
    return {
      id: Number(id),
      parent: Number(parent),
      device,
      root: unescapeField(root),
      mountPoint: unescapeField(mountPoint),
      options: options.split(','),
      propagation: tags.split(' ').slice(0, -1),
      fsType,
      source: unescapeField(source),
      superOptions: superOptions.split(','),
    }
  })
}

/** The row of one mount in the text of mountinfo: a table of thousands is not parsed for it. */
export function rowWithId(text: string, id: number): MountRow | undefined {
  const start = `\n${text}`.indexOf(`\n${id} `)
  return start === -1 ? undefined : parseMountinfo(text.slice(start, text.indexOf('\n', start) + 1))[0]
}

// The kernel writes space, tab, newline and backslash as three octal digits (fs/proc_namespace.c).
function unescapeField(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/**
 * The mounts that lie on one directory, the lowest first. The table lists them by age, and one that was put beneath
 * another is the younger.
 */
export function layersAt(rows: readonly MountRow[], directory: string): MountRow[] {
  const layers = rows.filter((row) => row.mountPoint === directory)
  const ids = new Set(layers.map(({ id }) => id))
  const lowest = layers.filter(({ id, parent }) => parent === id || !ids.has(parent))
  const stacked = new Set(lowest)
  // A set goes on with what is added to it meanwhile.
  for (const below of stacked) {
    for (const row of layers) if (row.parent === below.id) stacked.add(row)
  }
  return [...stacked]
}
