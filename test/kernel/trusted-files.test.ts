import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { memfs } from 'memfs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrustedFiles } from '../../src/kernel/trusted-files.ts'

type Fs = Parameters<typeof createTrustedFiles>[0]

let directory: string
beforeEach(() => {
  directory = fs.mkdtempSync(`${tmpdir()}/modekeep-files-`)
})
afterEach(() => fs.rmSync(directory, { recursive: true, force: true }))

/** Returns `over` with one call that fails as on a faulty disk. */
function broken(over: Fs, call: keyof Fs): Fs {
  return {
    ...over,
    [call]: () => {
      throw Object.assign(new Error('ENOSPC: injected'), { code: 'ENOSPC' })
    },
  }
}

it('two processes that create and remove the same empty directories do not fail', async () => {
  const module = new URL('../../src/kernel/trusted-files.ts', import.meta.url).href
  const code = `
    import * as fs from 'node:fs'
    const { createTrustedFiles } = await import(${JSON.stringify(module)})
    const files = createTrustedFiles(fs)
    const end = Date.now() + 1500
    let made = 0
    while (Date.now() < end) {
      files.makeDirectory('${directory}/a/b/c')
      files.removeEmpty('${directory}/a/b/c', '${directory}')
      made++
    }
    process.stdout.write(String(made))`
  const run = promisify(execFile)
  const args = ['--input-type=module', '-e', code]
  const results = await Promise.all([1, 2, 3].map(() => run(process.execPath, args)))
  for (const { stdout } of results) expect(Number(stdout)).toBeGreaterThan(10)
})

describe.each<[string, () => [typeof fs, string]]>([
  ['memfs', () => [memfs({ '/x': null }).fs as unknown as typeof fs, '/x']],
  ['real files', () => [fs, directory]],
])("modekeep's own files, on %s", (_where, place) => {
  it('are written with mode 0600, and reading them returns the same text', () => {
    const [over, top] = place()
    const files = createTrustedFiles(over)
    files.makeDirectory(`${top}/a/b`)
    files.replace(`${top}/a/b/record`, 'größe\n')
    expect(files.read(`${top}/a/b/record`)).toBe('größe\n')
    expect(over.statSync(`${top}/a/b/record`).mode & 0o777).toBe(0o600)
    expect(over.statSync(`${top}/a`).mode & 0o777).toBe(0o700)
    expect(files.has(`${top}/a/b/record`)).toBe(true)
    expect(over.statSync(`${top}/a/b`).mode & 0o777).toBe(0o700)
    expect(files.list(`${top}/a/b`)).toEqual(['record'])
  })

  it('are created in a directory whose empty parents other calls remove concurrently', () => {
    const [over, top] = place()
    let removals = 0
    const racing: Fs = {
      ...over,
      mkdirSync: ((path: string, options?: fs.MakeDirectoryOptions) => {
        // Another call removes the empty parents after this call has created them.
        if (path.endsWith('/c') && removals++ < 6) {
          createTrustedFiles(over).removeEmpty(`${top}/a/b`, top)
          throw Object.assign(new Error('ENOENT: no such file or directory, mkdir'), { code: 'ENOENT' })
        }
        return over.mkdirSync(path, options)
      }) as Fs['mkdirSync'],
    }
    createTrustedFiles(racing).makeDirectory(`${top}/a/b/c`)
    expect(removals).toBe(7)
    expect(over.existsSync(`${top}/a/b/c`)).toBe(true)
  })

  it('that do not exist are read as undefined, listed as empty, and removed without an error', () => {
    const [over, top] = place()
    const files = createTrustedFiles(over)
    expect(files.read(`${top}/none`)).toBeUndefined()
    expect(files.read(`${top}/none/deeper`)).toBeUndefined()
    expect(files.has(`${top}/none/deeper`)).toBe(false)
    expect(files.list(`${top}/none`)).toEqual([])
    files.remove(`${top}/none`)
    files.removeEmpty(`${top}/none/deeper`, top)
    expect(over.readdirSync(top)).toEqual([])
  })

  it('throw an error if they cannot be read', () => {
    const [over, top] = place()
    expect(() => createTrustedFiles(over).read(top)).toThrow(/EISDIR/)
  })

  it('have the requested mode under any umask', () => {
    const [over, top] = place()
    const umask = process.umask(0o077)
    try {
      createTrustedFiles(over).replace(`${top}/page`, 'text', 0o644)
    } finally {
      process.umask(umask)
    }
    expect(over.statSync(`${top}/page`).mode & 0o777).toBe(0o644)
  })

  it('permit their directory to be created twice', () => {
    const [over, top] = place()
    const files = createTrustedFiles(over)
    files.makeDirectory(`${top}/a/b`)
    files.replace(`${top}/a/b/record`, 'x')
    files.makeDirectory(`${top}/a/b`)
    expect(files.read(`${top}/a/b/record`)).toBe('x')
  })

  it.each<[keyof Fs]>([['openSync'], ['writeFileSync'], ['fsyncSync'], ['renameSync']])(
    'keep the old text when a replacement fails at %s, and have the new one after the next attempt',
    (call) => {
      const [over, top] = place()
      const files = createTrustedFiles(over)
      files.replace(`${top}/record`, 'old')
      expect(() => createTrustedFiles(broken(over, call)).replace(`${top}/record`, 'a longer new text')).toThrow(
        /ENOSPC/,
      )
      expect(files.read(`${top}/record`)).toBe('old')
      expect(over.readdirSync(top)).toEqual(['record'])
      files.replace(`${top}/record`, 'new')
      expect(files.read(`${top}/record`)).toBe('new')
      expect(over.readdirSync(top)).toEqual(['record'])
    },
  )

  it.each<[keyof Fs]>([['openSync'], ['writeFileSync'], ['fsyncSync'], ['renameSync']])(
    'are named with the remedy when %s fails, and the error keeps its code',
    (call) => {
      const [over, top] = place()
      const replace = () => createTrustedFiles(broken(over, call)).replace(`${top}/record`, 'x')
      expect(replace).toThrow(`cannot write ${top}/record (ENOSPC: injected): free space or inodes on its file system`)
      expect(replace).toThrow(expect.objectContaining({ code: 'ENOSPC' }))
    },
  )

  it('are not left incomplete on a full disk, so that their directory can be removed', () => {
    const [over, top] = place()
    const full: Fs = {
      ...over,
      writeFileSync: ((fd: number, text: string) => {
        over.writeFileSync(fd, text.slice(0, 3))
        throw Object.assign(new Error('ENOSPC: injected'), { code: 'ENOSPC' })
      }) as Fs['writeFileSync'],
    }
    const files = createTrustedFiles(full)
    files.makeDirectory(`${top}/mounts/a`)
    expect(() => files.replace(`${top}/mounts/a/record`, 'a text')).toThrow(/ENOSPC/)
    expect(over.readdirSync(`${top}/mounts/a`)).toEqual([])
    files.removeEmpty(`${top}/mounts/a`, `${top}/mounts`)
    expect(over.readdirSync(`${top}/mounts`)).toEqual([])
  })

  it('are not written if their directory is missing, and the first error is thrown', () => {
    const [over, top] = place()
    expect(() => createTrustedFiles(over).replace(`${top}/none/record`, 'x')).toThrow(/ENOENT.*open/)
    expect(over.readdirSync(top)).toEqual([])
  })

  it('are written despite a longer temporary file of a crash', () => {
    const [over, top] = place()
    over.writeFileSync(`${top}/record.new`, 'x'.repeat(1000))
    const files = createTrustedFiles(over)
    expect(files.read(`${top}/record`)).toBeUndefined()
    files.replace(`${top}/record`, 'new')
    expect(files.read(`${top}/record`)).toBe('new')
    expect(over.readdirSync(top)).toEqual(['record'])
  })

  it('are removed together with a temporary file of a crash', () => {
    const [over, top] = place()
    over.writeFileSync(`${top}/record`, 'old')
    over.writeFileSync(`${top}/record.new`, 'torn')
    createTrustedFiles(over).remove(`${top}/record`)
    expect(over.readdirSync(top)).toEqual([])
  })

  it('are removed if only the temporary file of a crash exists, and no other file is removed', () => {
    const [over, top] = place()
    over.writeFileSync(`${top}/record.new`, 'torn')
    over.writeFileSync(`${top}/record.newer`, 'kept')
    over.writeFileSync(`${top}/other.new`, 'kept')
    createTrustedFiles(over).remove(`${top}/record`)
    expect(over.readdirSync(top).sort()).toEqual(['other.new', 'record.newer'])
  })

  it('leave no open descriptor after any failure', () => {
    const [over, top] = place()
    for (const call of ['writeFileSync', 'fsyncSync', 'renameSync'] as const) {
      let open = 0
      const counted: Fs = {
        ...broken(over, call),
        openSync: ((...args: Parameters<typeof fs.openSync>) => {
          open++
          return over.openSync(...args)
        }) as Fs['openSync'],
        closeSync: (fd) => {
          open--
          over.closeSync(fd)
        },
      }
      expect(() => createTrustedFiles(counted).replace(`${top}/record`, 'x')).toThrow(/ENOSPC/)
      expect(open).toBe(0)
    }
  })

  it('reach the disk in the order: text, name, directory', () => {
    const [over, top] = place()
    const calls: string[] = []
    const told: Fs = {
      ...over,
      writeFileSync: ((fd: number, text: string) => {
        calls.push('write')
        over.writeFileSync(fd, text)
      }) as Fs['writeFileSync'],
      fsyncSync: (fd) => {
        calls.push(over.fstatSync(fd).isDirectory() ? 'sync directory' : 'sync file')
        over.fsyncSync(fd)
      },
      renameSync: (from, to) => {
        calls.push('rename')
        over.renameSync(from, to)
      },
    }
    createTrustedFiles(told).replace(`${top}/record`, 'x')
    expect(calls).toEqual(['write', 'sync file', 'rename', 'sync directory'])
  })
})

describe.each<[string, () => [typeof fs, string]]>([
  ['memfs', () => [memfs({ '/x': null }).fs as unknown as typeof fs, '/x']],
  ['real files', () => [fs, directory]],
])('empty directories, on %s', (_where, place) => {
  it('are removed up to the given top directory, which remains', () => {
    const [over, top] = place()
    over.mkdirSync(`${top}/mounts/a/b/c`, { recursive: true })
    createTrustedFiles(over).removeEmpty(`${top}/mounts/a/b/c`, `${top}/mounts`)
    expect(over.readdirSync(`${top}/mounts`)).toEqual([])
  })

  it('are removed up to the first parent that is not empty', () => {
    const [over, top] = place()
    over.mkdirSync(`${top}/mounts/a/b/c`, { recursive: true })
    over.writeFileSync(`${top}/mounts/a/record`, '')
    createTrustedFiles(over).removeEmpty(`${top}/mounts/a/b/c`, `${top}/mounts`)
    expect(over.readdirSync(`${top}/mounts/a`)).toEqual(['record'])
  })

  it('are removed if another process has already removed the deepest', () => {
    const [over, top] = place()
    over.mkdirSync(`${top}/mounts/a`, { recursive: true })
    createTrustedFiles(over).removeEmpty(`${top}/mounts/a/b/c`, `${top}/mounts`)
    expect(over.readdirSync(`${top}/mounts`)).toEqual([])
  })

  it('outside of the top directory are not removed', () => {
    const [over, top] = place()
    over.mkdirSync(`${top}/mounts-2/a`, { recursive: true })
    createTrustedFiles(over).removeEmpty(`${top}/mounts-2/a`, `${top}/mounts`)
    createTrustedFiles(over).removeEmpty(`${top}/mounts-2`, `${top}/mounts-2`)
    expect(over.readdirSync(`${top}/mounts-2`)).toEqual(['a'])
  })
})

// memfs removes the target of a link instead of the link.
it.each([fs.symlinkSync, fs.linkSync])('a replacement follows no link at its temporary name: %o', (link) => {
  const files = createTrustedFiles(fs)
  fs.writeFileSync(`${directory}/precious`, 'precious')
  link(`${directory}/precious`, `${directory}/record.new`)
  files.replace(`${directory}/record`, 'new')
  expect(files.read(`${directory}/precious`)).toBe('precious')
  expect(files.read(`${directory}/record`)).toBe('new')
  expect(fs.readdirSync(directory).sort()).toEqual(['precious', 'record'])
})
