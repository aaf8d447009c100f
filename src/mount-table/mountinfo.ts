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
const ROW = /^(\d+) (\d+) (\d+:\d+) ([^ ]+) ([^ ]+) ([^ ]+) ((?:[^ ]+ )*?)- ([^ ]*) ([^ ]*) ([^ ]*)/

/** Reads the text of mountinfo. @throws {Error} which quotes the invalid line */
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

/** Finds the row of one mount in the text of mountinfo without parsing the other rows. */
export function findRowById(text: string, id: number): MountRow | undefined {
  const start = `\n${text}`.indexOf(`\n${id} `)
  return start === -1 ? undefined : parseMountinfo(text.slice(start, text.indexOf('\n', start) + 1))[0]
}

/** Finds the rows of one file system, given as major:minor, without parsing other rows. */
export function findDeviceRows(text: string, device: string): MountRow[] {
  const lines = text.split('\n').filter((line) => line.includes(` ${device} `))
  return parseMountinfo(lines.join('\n')).filter((row) => row.device === device)
}

// The kernel writes space, tab, newline and backslash as three octal digits (fs/proc_namespace.c).
function unescapeField(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/**
 * Selects the mounts at one directory, the lowest first. The table lists mounts by age, and a mount that was put beneath
 * another is the younger one.
 */
export function selectLayers(rows: readonly MountRow[], directory: string): MountRow[] {
  return orderLayers(rows.filter((row) => row.mountPoint === directory))
}

/** Orders the mounts of one directory, the lowest first. Each is visited once. */
export function orderLayers(layers: readonly MountRow[]): MountRow[] {
  const ids = new Set(layers.map(({ id }) => id))
  const above = Map.groupBy(layers, ({ parent }) => parent)
  const stacked = new Set(layers.filter(({ id, parent }) => parent === id || !ids.has(parent)))
  // The iteration of a set includes elements that are added during it.
  for (const below of stacked) {
    for (const row of above.get(below.id) ?? []) stacked.add(row)
  }
  return [...stacked]
}

/**
 * Creates a function that finds rows by mount id. The text is indexed at the second query, because a search finds a single
 * row faster.
 */
export function createRowFinder(text: string): (id: number) => MountRow | undefined {
  let queries = 0
  let starts: Map<number, number> | undefined
  return (id) => {
    queries++
    if (queries === 1) return findRowById(text, id)
    starts ??= indexLineStarts(text)
    const start = starts.get(id)
    return start === undefined ? undefined : parseMountinfo(text.slice(start, findLineEnd(text, start)))[0]
  }
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
