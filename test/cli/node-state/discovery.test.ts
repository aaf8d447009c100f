import { describe, expect, it } from 'vitest'
import { findKubelets } from '../../../src/cli/node-state/kubelets.ts'

/** Files by their paths; a directory is what lies below it. */
function filesOf(files: Record<string, string>) {
  return {
    readForeign: (path: string) => files[path] ?? (/^\/proc\/\d+\/status$/.test(path) ? ROOTS : undefined),
    stat: () => ({ dev: 1, ino: 1, uid: 0, gid: 0, mode: 0o100755 }),
    list: (path: string) => [
      ...new Set(
        Object.keys(files)
          .filter((name) => name.startsWith(`${path}/`))
          .map((name) => name.slice(path.length + 1).split('/')[0] ?? ''),
      ),
    ],
  }
}

const argv = (...words: string[]) => words.map((word) => `${word}\0`).join('')

/** Of a process of root's that may mount. */
const ROOTS = 'Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n'

const found = (files: Record<string, string>, root?: string) => findKubelets(filesOf(files), '/proc', root)

describe('kubelet discovery', () => {
  it('lists kubelets by process id, each with the source of its plugin directory', () => {
    const files = {
      '/proc/self/mountinfo': '',
      '/proc/20/cmdline': argv('/usr/bin/kubelet'),
      '/proc/3/cmdline': argv('kubelet', '--volume-plugin-dir=/p/'),
      '/proc/4/cmdline': argv('sleep', '1'),
    }
    const said = 'volume-plugin-dir in its arguments'
    expect(found(files)).toEqual([
      { pid: '3', kind: 'kubelet', directory: '/p', why: said },
      {
        pid: '20',
        kind: 'kubelet',
        directory: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec',
        why: "says nothing: the kubelet's default",
        isDefault: true,
      },
    ])
  })

  it('returns no directory if a named configuration cannot be read', () => {
    const [one] = found({ '/proc/3/cmdline': argv('kubelet', '--config=/c.yaml') })
    expect(one).toMatchObject({
      directory: undefined,
      why: expect.stringContaining('cannot read its configuration /c.yaml'),
    })
  })

  it('returns no directory if an existing drop-in cannot be read, because it could be in force', () => {
    const files = {
      '/proc/3/cmdline': argv('kubelet', '--config-dir=/d'),
      '/d/1.conf': 'volumePluginDir: /p',
      '/d/2.conf': '',
    }
    const unread = { ...filesOf(files), readForeign: (path: string) => filesOf(files).readForeign(path) || undefined }
    expect(findKubelets(unread)).toMatchObject([
      { directory: undefined, why: expect.stringContaining('cannot read its configuration /d/2.conf') },
    ])
  })

  it('reads files in the root of the process first, then below the given root', () => {
    const kubelet = { '/proc/3/cmdline': argv('kubelet', '--config=/c') }
    const below = { ...kubelet, '/image/c': 'volumePluginDir: /below' }
    expect(found(below, '/image')[0]?.directory).toBe('/below')
    expect(found({ ...below, '/proc/3/root/c': 'volumePluginDir: /own' }, '/image')[0]?.directory).toBe('/own')
  })

  it.each([
    ['another user', { '/proc/3/status': ROOTS.replaceAll('0\t0', '1000\t1000') }],
    ['root by only one of its ids', { '/proc/3/status': ROOTS.replace('0\t0\t', '1000\t0\t') }],
    ['root in a container, which may not mount', { '/proc/3/status': ROOTS.replace('1ffffffffff', '000a80425fb') }],
    ['a user that is unknown', { '/proc/3/status': '' }],
  ])('ignores processes of %s', (_who, status) => {
    expect(found({ '/proc/3/cmdline': argv('kubelet', '--volume-plugin-dir=/evil'), ...status })).toEqual([])
  })

  it.each([
    ['belongs to another user', { uid: 1000, mode: 0o100755 }, 'uid 1000, mode 755'],
    ['others can write', { uid: 0, mode: 0o100775 }, 'uid 0, mode 775'],
    ['cannot be inspected', undefined, 'cannot be seen'],
  ])('does not use the arguments of a kubelet whose executable %s', (_what, stat, says) => {
    const files = filesOf({ '/proc/3/cmdline': argv('kubelet', '--volume-plugin-dir=/evil') })
    const of = stat && { dev: 1, ino: 1, gid: 0, ...stat }
    expect(findKubelets({ ...files, stat: () => of })).toEqual([
      { pid: '3', kind: 'kubelet', directory: undefined, why: expect.stringContaining(says) },
    ])
  })

  it('finds no kubelet if no process is visible', () => {
    expect(found({})).toEqual([])
  })
})
