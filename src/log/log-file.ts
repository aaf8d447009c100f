import { basename, dirname } from 'node:path'
import { type NodeFsModule, nodeFs } from '../kernel/path-handle.ts'
import { tolerateErrno } from '../kernel/system-error.ts'
import { makeDirectories, openFileToWriteIn, openParentDirectory, type ParentDirectory } from '../kernel/write-file.ts'

const MAX_LOG_FILE_BYTES = 10 * 1024 * 1024
const MAX_ROTATED_LOG_FILES = 3
const { O_APPEND, O_CREAT, O_WRONLY } = nodeFs.constants
// A rotation is a few renames, so a process that has not completed one in this time has died.
const MAX_LOG_ROTATION_MS = 60_000

/** Lists the paths of the log and its rotated files, the newest first. */
export function listLogFiles(file: string): string[] {
  return [file, ...Array.from({ length: MAX_ROTATED_LOG_FILES }, (_, index) => `${file}.${index + 1}`)]
}

/**
 * Appends one line. Never throws: a mount must not fail because the disk is full, or because a user other than root could
 * have created the log. At 10 MiB the file becomes `.1`, `.1` becomes `.2` and `.2` becomes `.3`, so the log has at most 40 MiB.
 */
export function appendLogLine(fs: NodeFsModule, file: string, line: string, largest = MAX_LOG_FILE_BYTES): void {
  try {
    using parent = openLogDirectory(fs, dirname(file))
    const name = basename(file)
    using log = openFileToWriteIn(fs, parent, name, O_WRONLY | O_CREAT | O_APPEND, 0o640)
    // One write with O_APPEND keeps the lines of concurrent calls apart.
    fs.writeSync(log.fd, `${line}\n`)
    if (fs.fstatSync(log.fd).size >= largest) rotateLog(fs, parent.at(name), log.fd)
  } catch {
    // The error cannot be reported elsewhere: stdout and stderr belong to kubelet.
  }
}

function openLogDirectory(fs: NodeFsModule, directory: string): ParentDirectory {
  const found = tolerateErrno('ENOENT', () => openParentDirectory(fs, directory))
  if (found !== undefined) return found
  makeDirectories(fs, directory, 0o750)
  return openParentDirectory(fs, directory)
}

/**
 * Rotates the log. Of concurrent calls one at a time renames files, and only if the file it wrote to still has the name.
 * That check alone is not enough: after it, another call could rotate and give the name to the next file. rename(2) follows
 * no link.
 * @param file the path of the log, through the handle of its directory
 */
function rotateLog(fs: NodeFsModule, file: string, fd: number): void {
  const marker = `${file}.rotating`
  try {
    fs.mkdirSync(marker)
  } catch {
    // Another call rotates. The marker of a crashed call is removed, so that the next call can rotate.
    if (Date.now() - fs.statSync(marker).mtimeMs > MAX_LOG_ROTATION_MS) fs.rmdirSync(marker)
    return
  }
  try {
    if (fs.lstatSync(file).ino !== fs.fstatSync(fd).ino) return
    const names = listLogFiles(file)
    for (let n = MAX_ROTATED_LOG_FILES; n > 0; n--) {
      try {
        fs.renameSync(names[n - 1] ?? '', names[n] ?? '')
      } catch {
        // This rotated file does not exist yet.
      }
    }
  } finally {
    fs.rmdirSync(marker)
  }
}
