import { describe, expect, it } from 'vitest'
import { checkFuseDevice } from '../../../src/cli/doctor/node.ts'
import { memoryStage } from '../../helpers/stage.ts'

const SOCKET = 'modekeep-fuse-7-mh3k1.sock'

/** On a node with these sockets of device plugins, and a device of this mode. */
function look(sockets: string[], mode: number | undefined) {
  const { host, fs } = memoryStage()
  fs.mkdirSync('/dev', { recursive: true })
  fs.chmodSync('/dev', 0o755)
  if (mode !== undefined) fs.writeFileSync('/dev/fuse', '', { mode })
  if (mode !== undefined) fs.chmodSync('/dev/fuse', mode)
  const list = (path: string) => (path === '/var/lib/kubelet/device-plugins' ? sockets : [])
  return [...checkFuseDevice({ ...host, files: { ...host.files, list } })]
}

describe('doctor, for /dev/fuse of the device plugin,', () => {
  it.each([0o600, 0o660, 0o664, 0o000])('warns of mode %o, with which only root can open /dev/fuse', (mode) => {
    expect(look(['kubelet.sock', SOCKET], mode)).toEqual([
      {
        level: 'warning',
        text: expect.stringContaining(`/dev/fuse has mode ${mode.toString(8).padStart(4, '0')}, and containers get it`),
        remedy: expect.stringContaining('chmod 0666 /dev/fuse'),
      },
    ])
  })

  it('reports ok if every user may read and write /dev/fuse', () => {
    expect(look([SOCKET], 0o666)).toMatchObject([{ level: 'ok' }])
  })

  it('reports nothing if no plugin runs or no device is visible', () => {
    expect(look(['kubelet.sock', 'nvidia.sock'], 0o600)).toEqual([])
    expect(look([SOCKET], undefined)).toEqual([])
  })
})
