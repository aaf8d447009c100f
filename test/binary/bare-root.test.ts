import { type SpawnSyncOptions, spawn, spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getuid } from 'node:process'
import { execa } from 'execa'
import fs from 'fs-extra'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CARRIED_LIBRARIES } from '../../scripts/build/libraries.ts'
import { provideMuslRoot } from '../../scripts/fetch/packages.ts'
import { isRoot } from '../helpers/stage.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'
import { compile } from '../race/compile.ts'

const MODEKEEP = join(import.meta.dirname, '../../dist/modekeep')
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

/** Runs a script in a mount namespace of its own, with a root directory that has /proc; $0 is the directory. */
const inRoot = (root: string, script: string) => {
  const whole = `mount -t proc proc "$0/proc"\n[ ! -d "$0/dev" ] || mount --rbind /dev "$0/dev"\n${script}`
  const args = ['--mount', '--propagation', 'private', 'sh', '-ec', whole, root]
  return run('unshare', args, { env: { PATH: process.env.PATH } })
}

const DIRECTORY = '/pods/p/volumes/modekeep~fs/v'
const OPTIONS = '{"source":"/srv/data","kubernetes.io/fsGroup":"2000","ownership":"walk"}'
const SUCCESS = '{"status":"Success"}\n'

/** A root directory with the executable, and what kubelet and an administrator of a node have. */
async function makeNodeRoot(root: string): Promise<string> {
  for (const path of ['proc', 'dev', 'srv/data', DIRECTORY]) await fs.mkdirp(join(root, path))
  await fs.copy(MODEKEEP, join(root, 'modekeep'))
  await fs.writeFile(join(root, 'srv/data/file'), 'content\n', { mode: 0o640 })
  const config = { stateDir: '/state', logFile: '/log', allow: [{ sources: ['/srv/*'] }] }
  await fs.outputJson(join(root, 'etc/modekeep/config.json'), config)
  return root
}

describe.skipIf(notRoot)(`the executable in a root directory without a C library${notRoot && ` (${notRoot})`}`, () => {
  it('replies to init with nothing but /proc', async () => {
    const root = join(directory, 'empty')
    await fs.mkdirp(join(root, 'proc'))
    await fs.copy(MODEKEEP, join(root, 'modekeep'))
    expect(inRoot(root, 'chroot "$0" /modekeep init')).toEqual({ status: 0, output: answer })
  })

  it('replies with a failure if /proc is missing', () => {
    const { status, output } = run('/usr/sbin/chroot', [join(directory, 'empty'), '/modekeep', 'init'])
    expect(status).toBe(0)
    expect(JSON.parse(output)).toMatchObject({ status: 'Failure', message: expect.stringContaining('/proc') })
  })

  it('mounts with a group, heals, unmounts and restores, with the volume, the configuration, /proc and /dev alone', async () => {
    const root = await makeNodeRoot(join(directory, 'node'))
    const calls = [`mount ${DIRECTORY} '${OPTIONS}'`, 'heal --json', `unmount ${DIRECTORY}`, 'restore /srv/data --json']
    const lines = calls.map((call) => `chroot "$0" /modekeep ${call}`)
    const { status, output } = inRoot(
      root,
      [lines[0], `stat -c %g "$0${DIRECTORY}/file"`, ...lines.slice(1)].join('\n'),
    )
    const [mounted, group, healed, unmounted, restored] = output.split('\n')
    expect({ status, mounted, group, unmounted }).toEqual({
      status: 0,
      mounted: SUCCESS.trim(),
      group: '2000',
      unmounted: SUCCESS.trim(),
    })
    expect(JSON.parse(healed ?? '')).toMatchObject({ kind: 'Heal' })
    expect(JSON.parse(restored ?? '')).toMatchObject({ kind: 'Restore' })
    expect((await fs.stat(join(root, 'srv/data/file'))).gid).toBe(0)
  })

  it('mounts and unmounts where the C library is musl, and does not load it', async ({ skip }) => {
    const musl = explainUnavailable(provideMuslRoot)
    if (musl !== '') skip(musl)
    const root = join(directory, 'musl')
    await fs.copy(provideMuslRoot(), root)
    await makeNodeRoot(root)
    const { status, output } = inRoot(
      root,
      `chroot "$0" /bin/busybox sh -ec '
         /modekeep init
         /modekeep mount ${DIRECTORY} "$1"
         /bin/busybox cat ${DIRECTORY}/file
         /modekeep unmount ${DIRECTORY}
         /modekeep version' sh '${OPTIONS}'`,
    )
    expect(status).toBe(0)
    expect(output.startsWith(`${answer}${SUCCESS}content\n${SUCCESS}modekeep `)).toBe(true)
  })

  it('ignores /etc/ld.so.preload and /etc/ld.so.cache of the node', async () => {
    const root = join(directory, 'preload')
    await fs.mkdirp(join(root, 'proc'))
    await fs.copy(MODEKEEP, join(root, 'modekeep'))
    // ld.so would complain about both on stderr.
    await fs.outputFile(join(root, 'etc/ld.so.preload'), '/evil.so\n')
    await fs.outputFile(join(root, 'etc/ld.so.cache'), 'not a cache')
    await fs.outputFile(join(root, 'evil.so'), 'not a library')
    expect(inRoot(root, 'chroot "$0" /modekeep init')).toEqual({ status: 0, output: answer })
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
    for (const name of CARRIED_LIBRARIES) await fs.copy(at('evil.so'), at(`libraries/${name}`))
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
