import { type SpawnSyncOptions, spawn, spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { getuid } from 'node:process'
import { execa } from 'execa'
import fs from 'fs-extra'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isRoot } from '../helpers/stage.ts'
import { compile } from '../race/compile.ts'

const MODEKEEP = join(import.meta.dirname, '../../dist/modekeep')
const INTERPRETER = process.arch === 'x64' ? '/lib64/ld-linux-x86-64.so.2' : '/lib/ld-linux-aarch64.so.1'
const GLIBC = ['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'librt.so.1']
const notRoot = getuid?.() === 0 ? '' : 'needs root: run the tests as root'

let directory = ''
let answer = ''

function run(command: string, args: string[], options: SpawnSyncOptions = {}) {
  const result = spawnSync(command, args, { env: {}, timeout: 600_000, ...options })
  return { status: result.status, output: `${result.stdout ?? ''}${result.stderr ?? ''}` }
}

const shell = (script: string, ...args: string[]) => run('/bin/sh', ['-c', script, 'sh', MODEKEEP, ...args])

beforeAll(async () => {
  directory = await fs.mkdtemp(join(tmpdir(), 'modekeep-bare-'))
  const { status, output } = run(MODEKEEP, ['init'])
  expect(status).toBe(0)
  expect(JSON.parse(output).status).toBe('Success')
  answer = output
})

afterAll(() => fs.remove(directory))

describe.skipIf(notRoot)(`the executable on a host with glibc only${notRoot && ` (${notRoot})`}`, () => {
  let root = ''
  const inside = () => run('/usr/sbin/chroot', [root, '/modekeep', 'init'])

  beforeAll(async () => {
    root = join(directory, 'root')
    const libc = /\S*\/libc\.so\.6$/m.exec(await fs.readFile('/proc/self/maps', 'utf8'))?.[0] ?? ''
    const present = GLIBC.map((name) => join(dirname(libc), name)).filter((path) => fs.existsSync(path))
    for (const path of [INTERPRETER, ...present]) await fs.copy(await fs.realpath(path), join(root, path))
    await fs.copy(MODEKEEP, join(root, 'modekeep'))
    await fs.mkdir(join(root, 'proc'))
  })

  it('replies to init', async () => {
    await execa('mount', ['-t', 'proc', 'proc', join(root, 'proc')])
    try {
      expect(inside()).toEqual({ status: 0, output: answer })
    } finally {
      await execa('umount', [join(root, 'proc')])
    }
  })

  it('replies with a failure if /proc is missing', () => {
    const { status, output } = inside()
    expect(status).toBe(0)
    expect(JSON.parse(output)).toMatchObject({ status: 'Failure', message: expect.stringContaining('/proc') })
  })

  it('replies with a failure if glibc is missing', async () => {
    await execa('mount', ['-t', 'proc', 'proc', join(root, 'proc')])
    try {
      await fs.move(join(root, INTERPRETER), join(root, 'away'))
      const { status, output } = inside()
      expect(status).toBe(0)
      expect(JSON.parse(output)).toMatchObject({ status: 'Failure', message: expect.stringContaining('no glibc') })
    } finally {
      await execa('umount', [join(root, 'proc')])
    }
  })
})

describe('a hostile environment variable', () => {
  const at = (name: string) => join(directory, 'hostile', name)
  const hostile: Record<string, () => string> = {
    LD_PRELOAD: () => at('evil.so'),
    LD_AUDIT: () => at('evil.so'),
    LD_LIBRARY_PATH: () => at('libraries'),
    LD_DEBUG: () => 'all',
    LD_TRACE_LOADED_OBJECTS: () => '1',
    LD_SHOW_AUXV: () => '1',
    GLIBC_TUNABLES: () => 'glibc.malloc.mxfast=nonsense:glibc.rtld.nns=x',
    MALLOC_PERTURB_: () => '165',
    GCONV_PATH: () => at('libraries'),
    LOCPATH: () => at('libraries'),
    NODE_OPTIONS: () => `--require=${at('evil.cjs')}`,
    NODE_PATH: () => at(''),
    NODE_DEBUG: () => '*',
    NODE_DEBUG_NATIVE: () => '*',
    NODE_V8_COVERAGE: () => at('coverage'),
    NODE_COMPILE_CACHE: () => '/proc/x',
    NODE_REDIRECT_WARNINGS: () => at('warnings'),
    NODE_PENDING_DEPRECATION: () => '1',
    NODE_EXTRA_CA_CERTS: () => at('evil.conf'),
    NODE_ICU_DATA: () => at('libraries'),
    NODE_TLS_REJECT_UNAUTHORIZED: () => '0',
    NODE_CHANNEL_FD: () => '0',
    OPENSSL_CONF: () => at('evil.conf'),
    OPENSSL_MODULES: () => at('libraries'),
    ICU_DATA: () => at('libraries'),
    UV_THREADPOOL_SIZE: () => '0',
    FORCE_COLOR: () => '3',
    NO_COLOR: () => '1',
    TERM: () => '../../../evil',
    TZ: () => ':/proc/self/mem',
    LC_ALL: () => '../../evil',
  }

  beforeAll(async () => {
    const write = `require('node:fs').writeFileSync(${JSON.stringify(at('marker'))}, '')`
    await fs.outputFile(at('evil.cjs'), write)
    await fs.outputFile(at('evil.conf'), 'openssl_conf = x\n[x]\nproviders = y\n[y]\nz = w\n[w]\nmodule = evil.so\n')
    await fs.mkdirp(at('coverage'))
    const source = at('evil.c')
    await fs.writeFile(
      source,
      `#include <fcntl.h>\n__attribute__((constructor)) static void f(void) { creat("${at('marker')}", 0600); }`,
    )
    const { failed } = await execa('gcc', ['-shared', '-fPIC', '-o', at('evil.so'), source], { reject: false })
    if (failed) await fs.writeFile(at('evil.so'), 'not a library: ld.so complains about it on stderr')
    for (const name of [...GLIBC, 'libstdc++.so.6', 'libgcc_s.so.1', 'libatomic.so.1'])
      await fs.copy(at('evil.so'), at(`libraries/${name}`))
  })

  const expectUnmoved = async (env: Record<string, string>) => {
    expect(run(MODEKEEP, ['init'], { env })).toEqual({ status: 0, output: answer })
    expect(await fs.pathExists(at('marker'))).toBe(false)
    expect(await fs.pathExists(at('warnings'))).toBe(false)
    expect(await fs.readdir(at('coverage'))).toEqual([])
  }

  it.each(Object.entries(hostile))('%s changes nothing', (name, value) => expectUnmoved({ [name]: value() }))

  it('together with all other hostile variables changes nothing', () =>
    expectUnmoved(Object.fromEntries(Object.entries(hostile).map(([name, value]) => [name, value()]))))

  it('has an effect on another program, which loads the hostile library', ({ skip }) => {
    if (!fs.readFileSync(at('evil.so')).includes('ELF')) skip('gcc is not installed: install it for this control')
    run('/bin/true', [], { env: { LD_PRELOAD: at('evil.so') } })
    expect(fs.existsSync(at('marker'))).toBe(true)
    fs.removeSync(at('marker'))
  })
})

describe('/proc/PID/cmdline', () => {
  const SECRET = '{"kubernetes.io/secret/password":"aHVudGVyMg=="}'

  /** What everybody can read, from the moment ld.so has begun: the loader runs before that. */
  const readWhileRunning = async (command: string, args: string[]) => {
    const child = spawn(command, args, { env: {}, stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const seen: string[] = []
    for (const end = performance.now() + 15; performance.now() < end || seen.length === 0; ) {
      const begun = fs.readFileSync(`/proc/${child.pid}/maps`, 'latin1').includes('libstdc++')
      const text = fs.readFileSync(`/proc/${child.pid}/cmdline`, 'latin1')
      if (text === '') break
      if (begun) seen.push(text.replace(/\0+$/, ''))
    }
    child.kill('SIGKILL')
    await ended
    return seen
  }

  const keeps = 'has the verb and the directory, but no longer the options when ld.so begins'
  it.skipIf(!isRoot)(
    isRoot ? keeps : `${keeps} (skipped: only root may look into it; run "sudo npm test")`,
    async () => {
      for (let round = 0; round < 10; round++) {
        const seen = new Set(await readWhileRunning(MODEKEEP, ['getvolumename', '/no/such/dir', SECRET, 'more']))
        expect([...seen]).toEqual([[MODEKEEP, 'getvolumename', '/no/such/dir'].join('\0')])
      }
    },
  )

  it('shows all arguments of a program without the loader', async () => {
    const seen = await readWhileRunning(process.execPath, ['-e', 'setTimeout(() => {}, 1000)', '/no/such/dir', SECRET])
    expect(seen.at(-1)).toContain('aHVudGVyMg')
  })
})

describe('an unusual caller of the executable', () => {
  const expectAnswer = (result: { status: number | null; output: string }) =>
    expect(result).toEqual({ status: 0, output: answer })

  it('may close stdin', () => expectAnswer(shell('exec "$1" init <&-')))
  it('may close stderr', () => expectAnswer(shell('exec "$1" init 2>&-')))
  it('may close stdin and stderr', () => expectAnswer(shell('exec "$1" init <&- 2>&-')))
  it('may close all three streams', () =>
    expect(shell('exec "$1" init <&- >&- 2>&-')).toEqual({ status: 0, output: '' }))
  it.each([64, 256])('may allow only %i open files', (files) =>
    expectAnswer(shell(`ulimit -Sn ${files}; exec "$1" init`)),
  )
  it('may pass no environment and an empty program name', () =>
    expectAnswer(run(MODEKEEP, ['init'], { argv0: '', env: {} })))

  it('may pass a megabyte of arguments', () => {
    const { status, output } = run(MODEKEEP, ['init', ...Array.from({ length: 10 }, () => 'x'.repeat(100_000))])
    expect(status).toBe(0)
    expect(JSON.parse(output)).toHaveProperty('status')
  })

  it('may pass no arguments, not even a program name', () => {
    const { status, output } = run(compile('binary/no-arguments.c'), [MODEKEEP])
    expect(status).toBe(0)
    expect(output).toMatch(/^modekeep \d/)
  })

  it('may disable address randomisation', ({ skip }) => {
    if (!fs.existsSync('/usr/bin/setarch')) skip('setarch is not installed: install util-linux')
    expectAnswer(run('/usr/bin/setarch', ['-R', MODEKEEP, 'init']))
  })

  it('may trace the executable with strace', ({ skip }) => {
    if (!fs.existsSync('/usr/bin/strace')) skip('strace is not installed: install it for this test')
    expectAnswer(run('/usr/bin/strace', ['-f', '-o', '/dev/null', MODEKEEP, 'init']))
  })
})
