import { describe, expect, it } from 'vitest'
import { kubelets } from '../../../src/operator/kubelet/discovery.ts'

/** Files by their paths; a directory is what lies below it. */
function filesOf(files: Record<string, string>) {
  return {
    readForeign: (path: string) => files[path],
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
const found = (files: Record<string, string>, root?: string) => kubelets(filesOf(files), '/proc', root)

describe('the kubelets that run', () => {
  it('are told by process id, each with what says where it looks', () => {
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
      },
    ])
  })

  it('cannot be told where a configuration that is named cannot be read', () => {
    const [one] = found({ '/proc/3/cmdline': argv('kubelet', '--config=/c.yaml') })
    expect(one).toMatchObject({ directory: undefined, why: 'cannot read its configuration /c.yaml' })
  })

  it('cannot be told where a drop-in that is there cannot be read: it could be the one in force', () => {
    const files = {
      '/proc/3/cmdline': argv('kubelet', '--config-dir=/d'),
      '/d/1.conf': 'volumePluginDir: /p',
      '/d/2.conf': '',
    }
    const unread = { ...filesOf(files), readForeign: (path: string) => filesOf(files).readForeign(path) || undefined }
    expect(kubelets(unread)).toMatchObject([{ directory: undefined, why: 'cannot read its configuration /d/2.conf' }])
  })

  it('are read in their own root first, then below the one that is given', () => {
    const kubelet = { '/proc/3/cmdline': argv('kubelet', '--config=/c') }
    const below = { ...kubelet, '/image/c': 'volumePluginDir: /below' }
    expect(found(below, '/image')[0]?.directory).toBe('/below')
    expect(found({ ...below, '/proc/3/root/c': 'volumePluginDir: /own' }, '/image')[0]?.directory).toBe('/own')
  })

  it('are none where no process is to be seen', () => {
    expect(found({})).toEqual([])
  })
})
