import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { OVERLAYS_BY_PLUGIN_DIR } from '../../src/cli/install/plugin-directory.ts'
import {
  BINARY,
  checkout,
  fakeProc,
  makeWorld,
  missing,
  needing,
  put,
  runHere,
  type World,
  writeDriver,
} from './world.ts'

const flatcar = '/var/lib/kubelet/volumeplugins'
const byDefault = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'
const config = '/var/lib/kubelet/config.yaml'

/** @param elsewhere processes that have mounts of their own */
function node(world: World, processes: string[][], elsewhere: number[] = []) {
  fakeProc(world, ...processes)
  const ids = ['self', ...processes.map((_, index) => String(101 + index))]
  for (const id of ids) {
    const mount = elsewhere.includes(Number(id)) ? 900 : 22
    writeFileSync(join(world.proc, id, 'mountinfo'), `${mount} 1 8:1 / / rw - ext4 /dev/sda1 rw\n`)
  }
}

function look(world: World, named: string, ...more: string[]) {
  const places = [
    '--root',
    world.root,
    '--proc',
    world.proc,
    '--binary',
    writeDriver(world, 'a'),
    '--plugin-dir',
    named,
  ]
  return runHere(['install', ...places, '--dry-run', ...more])
}

describe('a named plugin directory', () => {
  it.each([
    ['a flag', [['kubelet', '--volume-plugin-dir=/srv/x']], {}, '/srv/x', 'copy of an overlay, in which /srv/x'],
    ['its default', [['kubelet']], {}, byDefault, 'the overlay default or k3s'],
    [
      'its configuration',
      [['kubelet', `--config=${config}`]],
      { [config]: `volumePluginDir: ${byDefault}\n` },
      byDefault,
      'the overlay default or k3s',
    ],
    ['an argument of k3s', [['k3s', 'server', '--kubelet-arg=volume-plugin-dir=/srv/x']], {}, '/srv/x', 'copy of'],
  ] as const)(
    'is refused if %s of the kubelet names another directory, and the message has that directory',
    async (_, processes, files, its, way) => {
      const world = makeWorld()
      node(
        world,
        processes.map((argv) => [...argv]),
      )
      for (const [path, text] of Object.entries(files)) put(world, path, text)
      const { exitCode, stderr } = await look(world, flatcar)
      expect(exitCode).toBe(1)
      expect(stderr).toMatch(/^error: (kubelet|k3s) \(pid 101\) looks for drivers in /)
      expect(stderr).toContain(`in ${its}, not in ${flatcar} (`)
      expect(stderr).toContain(`--plugin-dir ${its}\n`)
      expect(stderr).toContain(way)
      expect(readdirSync(world.root)).toEqual(Object.keys(files).length > 0 ? ['var'] : [])
      const forced = await look(world, flatcar, '--any-kubelet')
      expect(forced).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/^warning: .* looks for drivers in/) })
      expect((await look(world, its)).stdout).toContain('named by --plugin-dir, as it is the directory of')
    },
  )

  it.each([
    ['no kubelet is visible', [['sleep', '1']], [], 'no kubelet is seen'],
    [
      'one of several kubelets uses it',
      [
        ['kubelet', '--volume-plugin-dir=/a'],
        ['kubelet', `--volume-plugin-dir=${flatcar}/`],
      ],
      [],
      'pid 102',
    ],
    [
      'a configuration is unreadable',
      [['kubelet', '--config=/gone']],
      [],
      'not known: cannot read its configuration /gone',
    ],
    [
      'another kubelet has a different one',
      [
        ['kubelet', '--volume-plugin-dir=/a'],
        ['kubelet', '--config=/gone'],
      ],
      [],
      'pid 102, looks there is not known',
    ],
    ['k3s, whose arguments are hidden, has no setting', [['k3s server']], [], 'k3s, pid 101, looks there is not known'],
    [
      'the kubelet has its own mounts',
      [['kubelet', '--volume-plugin-dir=/a']],
      [101],
      'not known: it has mounts of its own',
    ],
  ] as const)('is accepted if %s', async (_, processes, elsewhere, said) => {
    const world = makeWorld()
    node(
      world,
      processes.map((argv) => [...argv]),
      [...elsewhere],
    )
    const { exitCode, stdout, stderr } = await look(world, flatcar)
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toContain(said)
  })

  it.each([true, false])(
    "may be the same directory as the kubelet's under another path (the directory exists: %s)",
    async (isThere) => {
      const world = makeWorld()
      mkdirSync(join(world.root, isThere ? 'disk/kubelet/volumeplugins' : 'disk/kubelet'), { recursive: true })
      mkdirSync(join(world.root, 'var/lib'), { recursive: true })
      symlinkSync('../../disk/kubelet', join(world.root, 'var/lib/kubelet'))
      node(world, [['kubelet', `--volume-plugin-dir=${flatcar}`]])
      expect(await look(world, '/disk/kubelet/volumeplugins')).toMatchObject({ exitCode: 0, stderr: '' })
      expect(await look(world, '/disk/kubelet/others')).toMatchObject({ exitCode: 1 })
    },
  )

  it('is not compared by an uninstall, which removes the driver in that directory', async () => {
    const world = makeWorld()
    node(world, [['kubelet']])
    const args = ['uninstall', '--root', world.root, '--proc', world.proc, '--plugin-dir', flatcar, '--dry-run']
    expect(await runHere(args)).toMatchObject({ exitCode: 0 })
  })

  it('is compared with the existing overlays', () => {
    const overlays = readdirSync(join(checkout, 'driver/kubernetes/overlays'))
    const named = Object.values(OVERLAYS_BY_PLUGIN_DIR).flatMap((names) => names.split(' or '))
    expect(named.sort()).toEqual(overlays.sort())
    for (const [directory, names] of Object.entries(OVERLAYS_BY_PLUGIN_DIR)) {
      for (const name of names.split(' or ')) {
        const text = readFileSync(join(checkout, 'driver/kubernetes/overlays', name, 'kustomization.yaml'), 'utf8')
        expect(parse(text).patches?.[0].patch ?? byDefault, name).toContain(directory)
      }
    }
  })
})

needing(missing.root, missing.dist, missing.setpriv).describe('the executable', () => {
  const without = ['setpriv', '--bounding-set=-all', '--no-new-privs']
  const inWorld = (world: World) => `${world.root}/kubelet.yaml`
  const atRoot = () => '/kubelet.yaml'

  it.each([
    ['as root', [], inWorld],
    ['without permission to inspect other processes', without, inWorld],
    ['with the root directory of the node elsewhere, as in the container', without, atRoot],
  ])('the executable compares the named plugin directory with that of a running kubelet, %s', async (_, prefix, at) => {
    const world = makeWorld()
    put(world, 'kubelet.yaml', 'volumePluginDir: /srv/of-kubelet\n')
    const kubelet = spawn('/bin/sh', ['-c', 'echo; read _', 'sh', `--config=${at(world)}`], { argv0: 'kubelet' })
    onTestFinished(() => void kubelet.kill('SIGKILL'))
    await new Promise((resolve) => kubelet.stdout.once('data', resolve))
    const run = (directory: string) => {
      const args = ['install', '--dry-run', '--binary', writeDriver(world, 'a'), '--plugin-dir', directory]
      if (at === atRoot) args.push('--node-root', world.root)
      const [file = '', ...rest] = [...prefix, BINARY, ...args]
      return execa(file, rest, { reject: false })
    }
    expect(await run('/srv/of-no-kubelet')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        `kubelet (pid ${kubelet.pid}) looks for drivers in /srv/of-kubelet, not in /srv/of-no-kubelet`,
      ),
    })
    const { exitCode, stdout } = await run('/srv/of-kubelet')
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining(`the directory of kubelet, pid ${kubelet.pid}`)])
  })
})
