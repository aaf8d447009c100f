import * as fs from 'node:fs'
import { dirname } from 'node:path'

const DATA = '..data'
const NEW_DATA = '..data_tmp'

/**
 * Gives a volume directory its content in the order of system calls in which kubelet's atomic writer does it for
 * ConfigMaps, Secrets, projected and downward API volumes (pkg/volume/util/atomic_writer.go).
 * @param files path below the volume (`a`, `dir/a`) to content; a path that is no longer named disappears
 * @returns the dated directory that is current afterwards: the one from before where nothing changed
 */
export function write(directory: string, files: Readonly<Record<string, string>>): string {
  const before = currentData(directory)
  const gone = before === undefined ? [] : pathsGone(before, files)
  if (before !== undefined && gone.length === 0 && isSame(before, files)) return before
  const dated = makeDated(directory)
  for (const [path, content] of Object.entries(files)) {
    fs.mkdirSync(dirname(`${dated}/${path}`), { recursive: true })
    fs.writeFileSync(`${dated}/${path}`, content)
    fs.chmodSync(`${dated}/${path}`, 0o644)
  }
  for (const name of visibleNames(files)) {
    if (!isThere(`${directory}/${name}`)) fs.symlinkSync(`${DATA}/${name}`, `${directory}/${name}`)
  }
  fs.symlinkSync(dated.slice(directory.length + 1), `${directory}/${NEW_DATA}`)
  fs.renameSync(`${directory}/${NEW_DATA}`, `${directory}/${DATA}`)
  for (const path of gone) if (!path.includes('/')) fs.unlinkSync(`${directory}/${path}`)
  if (before !== undefined) fs.rmSync(before, { recursive: true })
  return dated
}

function currentData(directory: string): string | undefined {
  return isThere(`${directory}/${DATA}`) ? `${directory}/${fs.readlinkSync(`${directory}/${DATA}`)}` : undefined
}

/** Of `dir/a` only `dir` is a link in the volume directory. */
function visibleNames(files: Readonly<Record<string, string>>): Set<string> {
  return new Set(Object.keys(files).map((path) => path.split('/', 1)[0] ?? ''))
}

/** Of the old content, what the new has neither as a file nor as a directory on the way to one. */
function pathsGone(dated: string, files: Readonly<Record<string, string>>): string[] {
  const kept = new Set<string>()
  for (let path of Object.keys(files)) {
    for (; path !== '.'; path = dirname(path)) kept.add(path)
  }
  return fs.readdirSync(dated, { recursive: true, encoding: 'utf8' }).filter((path) => !kept.has(path))
}

function isSame(dated: string, files: Readonly<Record<string, string>>): boolean {
  return Object.entries(files).every(
    ([path, content]) => isThere(`${dated}/${path}`) && fs.readFileSync(`${dated}/${path}`, 'utf8') === content,
  )
}

/** Named by the second, told apart by digits as Go's os.MkdirTemp gives them. */
function makeDated(directory: string): string {
  const time = new Date().toISOString().slice(0, 19).replace(/[-T:]/g, '_')
  const path = `${directory}/..${time}.${Math.floor(Math.random() * 2 ** 32)}`
  fs.mkdirSync(path, { mode: 0o700 })
  fs.chmodSync(path, 0o755)
  return path
}

function isThere(path: string): boolean {
  return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
