import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readConfigFile } from '../../src/config/read-config.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { readOwnedFile } from '../../src/kernel/read-file.ts'
import { createTrustedFiles } from '../../src/kernel/trusted-files.ts'
import { appendLogLine } from '../../src/log/log-file.ts'
import { createLogReader } from '../../src/log/log-reader.ts'
import { createDuplicateWarningCheck } from '../../src/log/warning-dedup.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'

const ORDINARY_USER_ID = 1000
const ORDINARY_GROUP_ID = 1000
const files = createTrustedFiles(fs)

let top: string
beforeEach(() => {
  top = fs.mkdtempSync('/tmp/modekeep-open-')
})
afterEach(() => fs.rmSync(top, { recursive: true, force: true }))

const make = (path: string, text = 'precious') => {
  fs.writeFileSync(path, text)
  return path
}
const text = (path: string) => fs.readFileSync(path, 'utf8')

/** Creates a directory that users other than root can write, such as /var/log on Debian. */
function sharedDirectory(mode: 'group' | 'all' = 'group'): string {
  const path = `${top}/shared`
  fs.mkdirSync(path)
  fs.chownSync(path, 0, ORDINARY_GROUP_ID)
  fs.chmodSync(path, mode === 'group' ? 0o775 : 0o777)
  return path
}

/**
 * Creates the layout of kubelet's atomic writer: any user may write to the volume's directory, and each file is a link.
 */
function projectedVolume(name: string, content: string): string {
  const volume = `${top}/volume`
  fs.mkdirSync(`${volume}/..2026_11_26`, { recursive: true })
  fs.chmodSync(volume, 0o777)
  make(`${volume}/..2026_11_26/${name}`, content)
  fs.symlinkSync('..2026_11_26', `${volume}/..data`)
  fs.symlinkSync(`..data/${name}`, `${volume}/${name}`)
  return `${volume}/${name}`
}

const skipReason = isRoot ? '' : 'files of other users need root; run "sudo npm test"'

describe.skipIf(!isRoot)(addSkipReason('a file that modekeep reads by a path', skipReason), () => {
  it.each(['config.json', 'labels'])("is read through the links of a ConfigMap's or downwardAPI volume: %s", (name) => {
    const path = projectedVolume(name, '{"logLevel": "debug"}')
    expect(readOwnedFile(path)?.toString()).toBe('{"logLevel": "debug"}')
    expect(files.readForeign(path)).toBe('{"logLevel": "debug"}')
  })

  it("is read through NixOS's links of /etc, through a store that its builders may write", async () => {
    for (const name of ['etc', 'store/1-etc/etc/modekeep']) fs.mkdirSync(`${top}/${name}`, { recursive: true })
    fs.chownSync(`${top}/store`, 0, ORDINARY_GROUP_ID)
    fs.chmodSync(`${top}/store`, 0o1775)
    make(`${top}/store/1-etc/etc/modekeep/config.json`, '{"logLevel": "debug"}')
    fs.symlinkSync(`${top}/store/1-etc/etc`, `${top}/etc/static`)
    fs.symlinkSync('static/modekeep', `${top}/etc/modekeep`)
    const { config, faults } = await readConfigFile(`${top}/etc/modekeep/config.json`, true)
    expect([config.logLevel, faults]).toEqual(['debug', []])
  })

  it('is read through a link in place of kubelet\'s directory, with ".." below it', () => {
    fs.mkdirSync(`${top}/data/kubelet/pods/u`, { recursive: true })
    make(`${top}/data/kubelet/pods/u/userns`, 'ids')
    fs.mkdirSync(`${top}/lib`)
    fs.symlinkSync('../data/../data/kubelet', `${top}/lib/kubelet`)
    expect(files.read(`${top}/lib/kubelet/pods/u/userns`)).toBe('ids')
  })

  it.each<[string, (path: string) => void]>([
    [
      "behind another user's link",
      (path) => {
        fs.symlinkSync(make(`${top}/other`), path)
        fs.lchownSync(path, ORDINARY_USER_ID, ORDINARY_USER_ID)
      },
    ],
    [
      "behind root's link out of a directory that others can write",
      (path) => fs.symlinkSync(make(`${top}/other`), path),
    ],
    [
      "behind root's link up and out of a directory that others can write",
      (path) => {
        make(`${top}/other`)
        fs.symlinkSync('../other', path)
      },
    ],
    [
      "in a directory that another user's link leads to",
      (path) => {
        fs.mkdirSync(`${top}/other`)
        make(`${top}/other/file`)
        fs.symlinkSync(`${top}/other`, `${path}.d`)
        fs.lchownSync(`${path}.d`, ORDINARY_USER_ID, ORDINARY_USER_ID)
        fs.symlinkSync('file.d/file', path)
      },
    ],
  ])('is refused %s', (_what, prepare) => {
    const path = `${sharedDirectory()}/file`
    prepare(path)
    expect(() => files.readForeign(path)).toThrow(/symbolic link/)
    expect(() => files.read(path)).toThrow(/symbolic link/)
    expect(() => readOwnedFile(path)).toThrow(/symbolic link that users other than root can exchange/)
    expect([...createLogReader(fs, path, 'show').lines()]).toEqual([])
  })

  it('is refused behind any link below a directory that others can write', () => {
    const shared = sharedDirectory()
    fs.mkdirSync(`${shared}/own`)
    fs.symlinkSync(make(`${top}/other`), `${shared}/own/file`)
    expect(() => readOwnedFile(`${shared}/own/file`)).toThrow(/symbolic link/)
    // The name is no link, so its owner and mode decide.
    expect(readOwnedFile(make(`${shared}/own/plain`))?.toString()).toBe('precious')
  })

  it('is refused as a record if it belongs to another user', () => {
    fs.chownSync(make(`${top}/record.json`), ORDINARY_USER_ID, ORDINARY_USER_ID)
    expect(() => files.read(`${top}/record.json`)).toThrow(/EPERM.*belongs to another user than root/)
  })

  it('is not waited for if it is a FIFO, and not read endlessly if it is a device', () => {
    execFileSync('mkfifo', [`${top}/fifo`])
    fs.symlinkSync('/dev/zero', `${top}/zero`)
    for (const path of [`${top}/fifo`, `${top}/zero`]) {
      expect(() => files.read(path)).toThrow(/no regular file/)
      expect([...createLogReader(fs, path, 'show').lines()]).toEqual([])
      expect(createDuplicateWarningCheck(fs, path)('line')).toBe(false)
    }
    expect(() => files.readForeign(make(`${top}/large`, 'x'.repeat(2 ** 20 + 1)))).toThrow(/EFBIG/)
  })
})

/** Files that other users may have put in the place of a file that root writes. */
const PLACES: [string, (path: string) => string | undefined][] = [
  [
    'a link',
    (path) => {
      fs.symlinkSync(make(`${top}/target`), path)
      return `${top}/target`
    },
  ],
  [
    'a hard link of a file',
    (path) => {
      fs.linkSync(make(`${top}/target`), path)
      return `${top}/target`
    },
  ],
  [
    "another user's file",
    (path) => {
      fs.chownSync(make(path), ORDINARY_USER_ID, ORDINARY_USER_ID)
      return path
    },
  ],
  ['a FIFO', (path) => void execFileSync('mkfifo', [path])],
]

describe.skipIf(!isRoot)(addSkipReason('a file that modekeep writes', skipReason), () => {
  it.each(PLACES)('is neither changed nor waited for if it is %s', (_what, prepare) => {
    const path = `${sharedDirectory()}/file`
    const kept = prepare(path)
    appendLogLine(fs, path, 'line')
    expect(() => files.append(path, 'line')).toThrow(/EPERM|ELOOP|ENXIO/)
    expect(() => files.write(path, Buffer.from('bytes'))).toThrow(/EPERM|ELOOP|ENXIO/)
    expect(() => linuxHost.tryLock(path)).toThrow(/EPERM|ELOOP|ENXIO/)
    if (kept !== undefined) expect(text(kept)).toBe('precious')
  })

  it.each(PLACES)('is replaced by a new one if it is %s', (_what, prepare) => {
    const path = `${sharedDirectory()}/file`
    const kept = prepare(path)
    files.replace(path, 'new')
    expect([fs.lstatSync(path).isFile(), fs.lstatSync(path).uid, text(path)]).toEqual([true, 0, 'new'])
    if (kept !== undefined && kept !== path) expect(text(kept)).toBe('precious')
  })

  it.each<[string, (directory: string) => void]>([
    [
      "is another user's",
      (directory) => {
        fs.mkdirSync(directory)
        fs.chownSync(directory, ORDINARY_USER_ID, ORDINARY_USER_ID)
      },
    ],
    ['is behind a link that others could place', (directory) => fs.symlinkSync(`${top}/target`, directory)],
  ])('is not created in a directory that %s', (_what, prepare) => {
    fs.mkdirSync(`${top}/target`)
    const directory = `${sharedDirectory()}/modekeep`
    prepare(directory)
    appendLogLine(fs, `${directory}/log`, 'line')
    expect(() => files.append(`${directory}/file`, 'line')).toThrow(/EPERM|ELOOP/)
    expect(() => linuxHost.tryLock(`${directory}/lock`)).toThrow(/EPERM|ELOOP/)
    expect(fs.readdirSync(directory)).toEqual([])
    expect(fs.readdirSync(`${top}/target`)).toEqual([])
  })

  it('is neither replaced nor removed through a link that other users could place', () => {
    fs.mkdirSync(`${top}/target`)
    make(`${top}/target/record.json`)
    const directory = `${sharedDirectory()}/modekeep`
    fs.symlinkSync(`${top}/target`, directory)
    expect(() => files.replace(`${directory}/record.json`, 'new')).toThrow(/ELOOP/)
    expect(() => files.remove(`${directory}/record.json`)).toThrow(/ELOOP/)
    expect(() => files.create(`${directory}/export`, true)).toThrow(/ELOOP/)
    expect(fs.readdirSync(`${top}/target`)).toEqual(['record.json'])
    expect(text(`${top}/target/record.json`)).toBe('precious')
  })

  it.each(['group', 'all'] as const)("is written in root's directory below one that others can write: %s", (mode) => {
    const log = `${sharedDirectory(mode)}/modekeep/log`
    for (const line of ['one', 'two', 'three']) appendLogLine(fs, log, line, 8)
    expect([text(`${log}.1`), text(log)]).toEqual(['one\ntwo\n', 'three\n'])
  })

  it("is written below a sticky directory, and through root's link there", () => {
    const shared = sharedDirectory('all')
    fs.chmodSync(shared, 0o1777)
    fs.mkdirSync(`${shared}/real`)
    fs.symlinkSync('real', `${shared}/link`)
    appendLogLine(fs, `${shared}/link/log`, 'line')
    expect(text(`${shared}/real/log`)).toBe('line\n')
  })

  it.each<[string, (shared: string) => void]>([
    ['by a directory above it', (shared) => fs.chmodSync(shared, 0o777)],
    ['by its group', (shared) => fs.chmodSync(shared, 0o770)],
    ['as its owner', (shared) => fs.chownSync(shared, ORDINARY_USER_ID, ORDINARY_USER_ID)],
  ])('is not opened by SQLite if others can replace it %s', (_what, prepare) => {
    const shared = sharedDirectory()
    fs.chmodSync(shared, 0o755)
    fs.mkdirSync(`${shared}/state`)
    linuxHost.openDatabase(`${shared}/state/journal.db`).close()
    prepare(shared)
    expect(() => linuxHost.openDatabase(`${shared}/state/journal.db`)).toThrow(
      `users other than root can replace files in ${shared}/state: chown root`,
    )
  })

  it('is not opened by SQLite if one of its four files is a link', () => {
    fs.symlinkSync(make(`${top}/target`), `${top}/journal.db-wal`)
    expect(() => linuxHost.openDatabase(`${top}/journal.db`)).toThrow(/EPERM/)
    expect(text(`${top}/target`)).toBe('precious')
  })
})

describe('a file of an ordinary user', () => {
  it("is written and read by modekeep when it runs as that user, in the user's directory and below /tmp", () => {
    const code = `
      import * as fs from 'node:fs'
      import { appendLogLine } from ${JSON.stringify(new URL('../../src/log/log-file.ts', import.meta.url).href)}
      import { createTrustedFiles } from ${JSON.stringify(new URL('../../src/kernel/trusted-files.ts', import.meta.url).href)}
      if (process.getuid() === 0) { process.setgid(1000); process.setuid(1000) }
      const top = fs.mkdtempSync('/tmp/modekeep-user-')
      const files = createTrustedFiles(fs)
      appendLogLine(fs, top + '/a/log', 'line')
      files.replace(top + '/a/record', 'text')
      fs.symlinkSync('a', top + '/link')
      console.log(files.read(top + '/link/log') + files.read(top + '/link/record'))
      fs.rmSync(top, { recursive: true })`
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
    expect(said).toBe('line\ntext\n')
  })
})
