import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { FakePrograms, findProcessesWith } from '../helper/fake-programs.ts'
import { cannotServe } from '../helpers/fuse-node.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { runsAgainst } from './remote.ts'

/** A stage with fake servers, whose content is a directory of the test. */
function openStage(): { stage: Stage; exported: string; programs: FakePrograms } {
  const programs = new FakePrograms()
  const exported = `${programs.top}/exported`
  fs.mkdirSync(exported)
  fs.writeFileSync(`${exported}/file`, 'data', { mode: 0o640 })
  const stage = kernelStage('tmpfs')
  onTestFinished(() => stage.close())
  stage.host = { ...stage.host, helpers: programs.helpers }
  stage.allow({ sources: ['server:/exports/*', '//server/share'], fsTypes: ['nfs', 'cifs'], singleNode: true })
  for (const program of ['mount.nfs', 'mount.cifs']) {
    programs.add(program, `echo "$4" >> $TOP/options; mount --bind ${exported} "$2"`)
  }
  return { stage, exported, programs }
}

const NFS = { 'kubernetes.io/fsType': 'nfs', source: 'server:/exports/a', 'kubernetes.io/mounterArgs.FsGroup': '2000' }
const cannotHang = cannotServe('bindfs')

const CIFS = { ...NFS, 'kubernetes.io/fsType': 'cifs', source: '//server/share', mountOptions: 'guest' }

describe.skipIf(!isRoot)(addSkipReason(`a volume on a server, ${runsAgainst('nfs')}`, cannotMountWith()), () => {
  it('a volume on a server is mounted and walked once, kept at a repeated mount, and leaves nothing after its unmount', async () => {
    const { stage, exported, programs } = openStage()
    const options = { ...NFS, ownership: 'walk' }
    await stage.mount('a', options)
    await stage.mount('a', options)
    expect(programs.read('options')).toBe('nosuid,nodev,retry=0,sec=sys\n')
    expect(fs.readFileSync(`${stage.podDirectory('a')}/file`, 'utf8')).toBe('data')
    expect(fs.statSync(`${exported}/file`).gid).toBe(2000)
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
    expect(execFileSync('findmnt', ['-rno', 'TARGET']).toString()).not.toContain(`${stage.config.stateDir}/`)
  })

  it('a volume on a server that cannot be mounted leaves no mount and no record', async () => {
    const { stage, programs } = openStage()
    programs.add('mount.nfs', 'echo "mount.nfs: Connection refused" >&2; exit 32')
    await expect(stage.mount('a', NFS)).rejects.toThrow(
      'mount.nfs failed with exit status 32: mount.nfs: Connection refused',
    )
    expect(stage.layers('a')).toEqual([])
    expect(fs.readdirSync(`${stage.config.stateDir}/mounts`)).toEqual([])
    expect(execFileSync('findmnt', ['-rno', 'TARGET']).toString()).not.toContain(`${stage.config.stateDir}/`)
  })

  it("a mount of a server that hangs is given up after helperTimeoutSeconds, and the pod's directory is unchanged", async () => {
    const { stage, programs } = openStage()
    stage.config = { ...stage.config, helperTimeoutSeconds: 1 }
    programs.add('mount.nfs', 'sleep 1000')
    await expect(stage.mount('a', NFS)).rejects.toThrow('mount.nfs did not end within 1 s (helperTimeoutSeconds')
    expect(stage.layers('a')).toEqual([])
    expect(fs.readdirSync(stage.podDirectory('a'))).toEqual([])
  })

  it('a CIFS volume shows the group by mount options, reports this method, and needs no rule with singleNode', async () => {
    const { stage, exported, programs } = openStage()
    stage.config = { ...stage.config, allow: [{ sources: ['//server/share'], fsTypes: ['cifs'] }] }
    await stage.mount('a', { ...CIFS, ownership: 'auto' })
    expect(programs.read('options')).toBe('guest,gid=2000,forcegid,file_mode=0660,dir_mode=0770,nosuid,nodev\n')
    expect(stage.noted).toMatchObject({ given: 'option', why: 'by mount options' })
    expect(fs.statSync(`${exported}/file`).gid).toBe(0)
    await stage.unmount('a')
  })

  it('a CIFS volume cannot be walked, and the message names the remedy', async () => {
    const { stage } = openStage()
    await expect(stage.mount('a', { ...CIFS, ownership: 'walk' })).rejects.toThrow(
      'option "ownership" is "walk", but on "cifs" its server decides about groups: use "auto", which gives the group by mount options',
    )
  })

  it.skipIf(cannotHang !== '')(
    `a volume whose server hangs blocks neither calls nor heal nor the unmount, and is reported${cannotHang && ` (skipped: ${cannotHang})`}`,
    async () => {
      const { stage, exported, programs } = openStage()
      programs.add('mount.nfs', `bindfs -o attr_timeout=0,entry_timeout=0 ${exported} "$2"`)
      await stage.mount('a', NFS)
      const [server] = findProcessesWith(`bindfs\0-o\0attr_timeout=0,entry_timeout=0\0${exported}`)
      process.kill(Number(server), 'SIGSTOP')
      onTestFinished(() => void process.kill(Number(server), 'SIGKILL'))
      // Not by the stage, which looks at the directory itself.
      const { config } = stage
      await mountPodVolume(
        stage.session(),
        parseFlexVolumeRequest(stage.podDirectory('a'), JSON.stringify(NFS), config, volumeKindLookup),
      )
      expect(stage.noted).toMatchObject({ decision: 'ready' })
      const reason = expect.stringContaining('health unknown: the server does not respond')
      expect(await stage.heal()).toMatchObject([{ state: 'unknown', action: 'none', reason }])
      await stage.unmount('a')
      expect(stage.layers('a')).toEqual([])
      expect(stage.warnings).toEqual([
        expect.stringContaining('health unknown: the server does not respond'),
        expect.stringContaining('health unknown: the server does not respond'),
        expect.stringContaining('its server does not respond: the kernel may wait'),
      ])
    },
  )
})
