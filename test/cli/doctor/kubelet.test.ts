import { describe, expect, it } from 'vitest'
import { checkKubelets } from '../../../src/cli/doctor/node.ts'
import type { NodeDiagnosis } from '../../../src/kernel/linux/diagnosis.ts'
import { memoryStage } from '../../helpers/stage.ts'

const PLUGINS = '/node/plugins'
const DRIVER = `${PLUGINS}/modekeep~fs/fs`

/** A node where this kubelet runs, and of its plugin directory what `mode` says of the driver. */
function look(
  { argv = '', mode, isSame = true }: { argv?: string; mode?: number; isSame?: boolean },
  executable?: string,
) {
  const { host, fs } = memoryStage()
  fs.chmodSync('/node', 0o755)
  if (mode !== undefined) {
    fs.mkdirSync(`${PLUGINS}/modekeep~fs`, { recursive: true, mode: 0o755 })
    fs.writeFileSync(DRIVER, '')
    fs.chmodSync(DRIVER, mode)
  }
  const files = {
    ...host.files,
    list: (path: string) => (path === '/proc' && argv !== '' ? ['7'] : []),
    readForeign: (path: string) =>
      ({ '/proc/7/cmdline': argv, '/proc/7/status': 'Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n' })[path],
    stat: () => ({ dev: 1, ino: 1, uid: 0, gid: 0, mode: 0o100755 }),
  }
  const asked: string[] = []
  const isSameFile = (...both: [string, string]) => {
    asked.push(...both)
    return isSame
  }
  const found = [
    ...checkKubelets({ ...host, files }, { isSameFile } as Partial<NodeDiagnosis> as NodeDiagnosis, executable),
  ]
  return { found, asked }
}

const argv = `kubelet\0--volume-plugin-dir=${PLUGINS}\0`

describe('doctor, for kubelet,', () => {
  it('warns if no kubelet process is visible', () => {
    expect(look({}).found).toMatchObject([{ level: 'warning', text: 'no kubelet runs here' }])
  })

  it('reports a fault if the configuration of kubelet cannot be read, because the plugin directory is then unknown', () => {
    expect(look({ argv: 'kubelet\0--config=/c\0' }).found).toMatchObject([
      { level: 'fault', text: expect.stringContaining('kubelet (process 7): cannot read its configuration /c') },
    ])
  })

  it('reports a fault with the install command if the plugin directory does not exist', () => {
    expect(look({ argv }).found).toMatchObject([
      {
        level: 'fault',
        text: expect.stringContaining('does not exist'),
        remedy: `./install.sh --plugin-dir ${PLUGINS}`,
      },
    ])
  })

  it('reports a fault if the driver is not executable', () => {
    const { found } = look({ argv, mode: 0o644 })
    expect(found).toMatchObject([{ level: 'ok' }, { level: 'fault', text: `${DRIVER} is not executable` }])
  })

  it('reports a fault if users other than root can write the driver', () => {
    const { found } = look({ argv, mode: 0o757 })
    expect(found).toMatchObject([{ level: 'ok' }, { level: 'fault', text: expect.stringContaining(DRIVER) }])
  })

  it('compares the installed driver with this executable, unless it runs from sources', () => {
    expect(look({ argv, mode: 0o755 }).asked).toEqual([])
    expect(look({ argv, mode: 0o755 }, '/me')).toMatchObject({
      found: [{ level: 'ok' }, { level: 'ok', text: `${DRIVER} is this version` }],
      asked: [DRIVER, '/me'],
    })
    expect(look({ argv, mode: 0o755, isSame: false }, '/me').found[1]).toMatchObject({
      level: 'warning',
      text: `${DRIVER} is another version than /me`,
    })
  })
})
