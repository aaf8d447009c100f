import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findKubelets } from '../../src/cli/node-state/kubelets.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import {
  BINARY,
  fakeProc,
  makeWorld,
  missing,
  needing,
  pluginDir,
  put,
  runHere,
  type World,
  writeDriver,
} from './world.ts'

const byDefault = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec'
const config = '/var/lib/kubelet/config.yaml'
const kubelet = ['/usr/bin/kubelet', '--v=2', `--config=${config}`]
const k3s = '/etc/rancher/k3s/config.yaml'

interface Case {
  argv: string[][]
  files?: Record<string, string>
  found: string
}

const cases: Record<string, Case> = {
  'a flag with =': { argv: [['kubelet', '--v=2', '--volume-plugin-dir=/srv/x']], found: '/srv/x' },
  'a flag with a space': { argv: [['/usr/bin/kubelet', '--volume-plugin-dir', '/srv/x', '--v=2']], found: '/srv/x' },
  'a flag with underscores, which the kubelet accepts too': {
    argv: [['kubelet', '--volume_plugin_dir=/srv/x']],
    found: '/srv/x',
  },
  'the last of two flags': { argv: [['kubelet', '--volume-plugin-dir=/a', '--volume-plugin-dir=/b/']], found: '/b' },
  'a flag before the configuration': {
    argv: [[...kubelet, '--volume-plugin-dir=/srv/flag']],
    files: { [config]: 'volumePluginDir: /srv/file\n' },
    found: '/srv/flag',
  },
  'a directory with a space in its name': { argv: [['kubelet', '--volume-plugin-dir=/srv/a b']], found: '/srv/a b' },
  YAML: { argv: [kubelet], files: { [config]: 'kind: K\nvolumePluginDir: /srv/x # why\nz: 1\n' }, found: '/srv/x' },
  'YAML in double quotes': {
    argv: [kubelet],
    files: { [config]: 'volumePluginDir: "/srv/a b" # c\n' },
    found: '/srv/a b',
  },
  'YAML in single quotes': { argv: [kubelet], files: { [config]: "volumePluginDir:   '/srv/x'\r\n" }, found: '/srv/x' },
  'YAML with the key in a comment': {
    argv: [kubelet],
    files: { [config]: '# volumePluginDir: /no\n' },
    found: byDefault,
  },
  'YAML with an empty key': { argv: [kubelet], files: { [config]: 'volumePluginDir: ""\n' }, found: byDefault },
  'YAML with another key of the same ending': {
    argv: [kubelet],
    files: { [config]: 'myvolumePluginDir: /no\n' },
    found: byDefault,
  },
  JSON: { argv: [kubelet], files: { [config]: '{\n  "volumePluginDir": "/srv/x",\n  "a": 1\n}\n' }, found: '/srv/x' },
  'JSON on one line': {
    argv: [kubelet],
    files: { [config]: '{"a":1,"volumePluginDir":"/srv/x","b":{}}' },
    found: '/srv/x',
  },
  'a drop-in over the main file': {
    argv: [[...kubelet, '--config-dir', '/etc/kubelet.d']],
    files: {
      [config]: 'volumePluginDir: /no\n',
      '/etc/kubelet.d/10-a.conf': 'volumePluginDir: /no\n',
      '/etc/kubelet.d/20-b.conf': 'volumePluginDir: /srv/x\n',
      '/etc/kubelet.d/30-c.yaml': 'volumePluginDir: /no\n',
    },
    found: '/srv/x',
  },
  'hyperkube kubelet': { argv: [['/hyperkube', 'kubelet', '--volume-plugin-dir=/srv/x']], found: '/srv/x' },
  'k3s server': { argv: [['/usr/local/bin/k3s', 'server', '--kubelet-arg=volume-plugin-dir=/srv/x']], found: '/srv/x' },
  'k3s agent, separate argument': {
    argv: [['k3s', 'agent', '--kubelet-arg', 'volume-plugin-dir=/srv/x']],
    found: '/srv/x',
  },
  'rke2 agent': { argv: [['/opt/rke2/bin/rke2', 'agent', '--kubelet-arg=volume-plugin-dir=/srv/x']], found: '/srv/x' },
  'k3s, whose arguments are hidden, by its configuration': {
    argv: [['/usr/local/bin/k3s server']],
    files: { [k3s]: 'kubelet-arg:\n  - "v=2"\n  - "volume-plugin-dir=/srv/x"\n' },
    found: '/srv/x',
  },
  'k3s, whose arguments are hidden, by its unit': {
    argv: [['/usr/local/bin/k3s agent']],
    files: {
      '/etc/systemd/system/k3s-agent.service': "ExecStart=k3s agent \\\n  '--kubelet-arg=volume-plugin-dir=/srv/x'\n",
    },
    found: '/srv/x',
  },
  'k3s by the last value of its configuration': {
    argv: [['/usr/local/bin/k3s server']],
    files: {
      [k3s]: 'kubelet-arg:\n  - "volume-plugin-dir=/no"\n',
      '/etc/rancher/k3s/config.yaml.d/10.yaml': 'kubelet-arg:\n  - "volume-plugin-dir=/no"\n',
      '/etc/rancher/k3s/config.yaml.d/20.yaml': 'kubelet-arg:\n  - "volume-plugin-dir=/srv/x"\n',
    },
    found: '/srv/x',
  },
  'k3s by its unit before its configuration, like k3s itself': {
    argv: [['/usr/local/bin/k3s server']],
    files: {
      [k3s]: 'kubelet-arg: ["volume-plugin-dir=/no"]\n',
      '/etc/systemd/system/k3s.service': 'ExecStart=k3s server --kubelet-arg=volume-plugin-dir=/srv/x\n',
    },
    found: '/srv/x',
  },
  'k3s by a drop-in of its kubelet, after all arguments': {
    argv: [['/usr/local/bin/k3s server']],
    files: {
      '/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00.conf': 'volumePluginDir: /no\n',
      '/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/10.conf': 'volumePluginDir: /srv/x\n',
    },
    found: '/srv/x',
  },
  'k3s without a setting': { argv: [['/usr/local/bin/k3s server']], found: byDefault },
  'rke2 and the kubelet that it started': {
    argv: [
      ['/usr/local/bin/rke2', 'server'],
      ['kubelet', '--volume-plugin-dir=/srv/x'],
    ],
    found: '/srv/x',
  },
  'two kubelets that agree': {
    argv: [
      ['kubelet', '--volume-plugin-dir=/srv/x'],
      ['kubelet', '--volume-plugin-dir=/srv/x/'],
    ],
    found: '/srv/x',
  },
  'a kubelet without a setting': { argv: [['kubelet', '--v=2']], found: byDefault },
  'a kubelet among programs whose arguments mention it': {
    argv: [
      ['grep', 'kubelet', '--volume-plugin-dir=/no'],
      ['k3s', 'kubectl', '--kubelet-arg=volume-plugin-dir=/no'],
      ['kubelet', '--volume-plugin-dir=/srv/x'],
      ['/usr/bin/kubelet-exporter', '--volume-plugin-dir=/no'],
    ],
    found: '/srv/x',
  },
}

const look = (world: World) =>
  runHere(['install', '--root', world.root, '--proc', world.proc, '--binary', writeDriver(world, 'a'), '--dry-run'])

describe('the plugin directory', () => {
  it.each(Object.entries(cases))('is found from %s', async (_, { argv, files = {}, found }) => {
    const world = makeWorld()
    fakeProc(world, ...argv)
    for (const [path, text] of Object.entries({ [config]: '', ...files })) put(world, path, text)
    const { exitCode, stdout, stderr } = await look(world)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain(`plugin dir  ${world.root}${found} (`)
    // What doctor says is the same.
    const theirs = findKubelets(linuxHost.files, world.proc, world.root).map(({ directory }) => directory)
    expect([...new Set(theirs)]).toEqual([found])
  })
})

describe('the plugin directory', () => {
  it('is not guessed if kubelets differ: the message lists the kubelets', async () => {
    const world = makeWorld()
    fakeProc(world, ['kubelet', '--volume-plugin-dir=/a'], ['kubelet', '--volume-plugin-dir=/b'])
    const { exitCode, stderr } = await look(world)
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(
      /different volume plugin directories:\n +\/a .*pid 101.*\n +\/b .*pid 102.*\n.*--plugin-dir DIR/,
    )
  })

  it("is not guessed if a kubelet's configuration is unreadable", async () => {
    const world = makeWorld()
    fakeProc(world, kubelet)
    const { exitCode, stderr } = await look(world)
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`cannot read its configuration ${config}`)
    expect(stderr).toContain('--plugin-dir DIR')
  })

  const executable = needing(missing.root, missing.dist)
  it.skipIf(executable.isMissing).each([
    ['FIFO', `--config=${config}`, config],
    ['device', `--config=${config}`, config],
    ['FIFO', '--config-dir=/etc/kubelet.d', '/etc/kubelet.d/10.conf'],
  ])(
    executable.titled('does not make the installer wait if a process names a %s as %s'),
    async (kind, argument, file) => {
      const world = makeWorld()
      fakeProc(world, ['kubelet', argument])
      const path = join(world.root, file)
      mkdirSync(dirname(path), { recursive: true })
      if (kind === 'FIFO') await execa('mkfifo', [path])
      else symlinkSync('/dev/zero', path)
      const args = [
        'install',
        '--root',
        world.root,
        '--proc',
        world.proc,
        '--binary',
        writeDriver(world, 'a'),
        '--dry-run',
      ]
      const { exitCode, stderr } = await execa(BINARY, args, { reject: false, timeout: 20_000, killSignal: 'SIGKILL' })
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`cannot read its configuration ${file}`)])
    },
  )

  it('is refused if it is a relative path', async () => {
    const world = makeWorld()
    fakeProc(world, ['kubelet', '--volume-plugin-dir=plugins'])
    expect(await look(world)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('not an absolute path') })
  })

  it('must be given if no source names a directory', async () => {
    const world = makeWorld()
    fakeProc(world)
    const { exitCode, stderr } = await look(world)
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/no kubelet was found, and none of the known.*\n.*--plugin-dir DIR/)
  })

  it('is the only known directory that exists if no kubelet runs', async () => {
    const world = makeWorld()
    fakeProc(world, ['sleep', '1'])
    mkdirSync(join(world.root, '/home/kubernetes/flexvolume'), { recursive: true })
    expect((await look(world)).stdout).toContain(`${world.root}/home/kubernetes/flexvolume (no kubelet was found`)
  })

  it('must be given if several known directories exist, which are listed, unless one has the driver already', async () => {
    const world = makeWorld()
    fakeProc(world)
    for (const path of [pluginDir, byDefault]) mkdirSync(join(world.root, path), { recursive: true })
    const { exitCode, stderr } = await look(world)
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(new RegExp(`several .* exist:\n +${pluginDir}\n +${byDefault}\n.*--plugin-dir DIR`))
    put(world, `${byDefault}/modekeep~fs/fs`, 'x')
    expect((await look(world)).stdout).toContain(`${world.root}${byDefault} (no kubelet was found; the driver is there`)
  })

  it('of a kubelet in a container causes a warning unless the container shows the directory of the node', async () => {
    const world = makeWorld()
    fakeProc(world, ['kubelet', '--volume-plugin-dir=/srv/x', `--config=${config}`])
    mkdirSync(join(world.root, 'srv/x'), { recursive: true })
    const container = join(world.base, 'container')
    mkdirSync(join(container, 'srv'), { recursive: true })
    symlinkSync(container, join(world.proc, '101/root'))
    expect((await look(world)).stderr).toMatch(
      /^warning: the kubelet \(pid 101\) runs in a container .*\/srv\/x: mount it/,
    )
    symlinkSync(join(world.root, 'srv/x'), join(container, 'srv/x'))
    expect((await look(world)).stderr).toBe('')
  })

  it('of a kubelet in a container is read from the configuration in the container', async () => {
    const world = makeWorld()
    fakeProc(world, kubelet)
    put(world, config, 'volumePluginDir: /no\n')
    put(world, `../container/${config}`, 'volumePluginDir: /srv/x\n')
    symlinkSync(join(world.base, 'container'), join(world.proc, '101/root'))
    expect((await look(world)).stdout).toContain(`${world.root}/srv/x (`)
  })

  needing(missing.mounts).it('an install on a read-only /usr names the kubelet flag to set', async () => {
    const world = makeWorld()
    fakeProc(world, ['kubelet'])
    const usr = join(world.root, 'usr')
    mkdirSync(usr)
    await execa('mount', ['-t', 'tmpfs', '-o', 'ro,mode=0755', 'tmpfs', usr])
    onTestFinished(async () => {
      await execa('umount', [usr])
    })
    const args = ['install', '--root', world.root, '--proc', world.proc, '--binary', writeDriver(world, 'a')]
    const { exitCode, stderr } = await runHere(args)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('--volume-plugin-dir=/var/lib/kubelet/volumeplugins')
    const elsewhere = await runHere([...args, '--plugin-dir', pluginDir])
    expect(elsewhere.exitCode).toBe(0)
    expect(elsewhere.stderr).toMatch(/^warning: cannot write .*usr\/local\/sbin: no link there/)
  })
})
