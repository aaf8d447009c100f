import { execFileSync } from 'node:child_process'
import { beforeEach, describe, expect, it } from 'vitest'
import { runVerb } from '../../src/cli/commands/index.ts'
import type { PlanDocument } from '../../src/cli/commands/plan.ts'
import type { StatusDocument } from '../../src/cli/commands/status-document.ts'
import { formatStatus } from '../../src/cli/commands/status-text.ts'
import { checkHiddenMounts } from '../../src/cli/doctor/records.ts'
import { formatOutputLines } from '../../src/cli/output/output.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'

onKernelStages('a mount inside of the source', (open) => {
  let stage: Stage
  let source: string
  let mounts: string[]
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    mounts = []
    stage.fs.mkdirSync(`${source}/disk`, { recursive: true })
    stage.fs.writeFileSync(`${source}/disk/beneath`, '')
    return () => {
      for (const pod of ['a', 'b']) {
        for (const _ of stage.layers(pod)) execFileSync('umount', ['-l', stage.podDirectory(pod)])
      }
      for (const path of mounts.reverse()) execFileSync('umount', [path])
      stage.close()
    }
  })

  function mountDisk(name = 'disk'): string {
    const path = `${source}/${name}`
    stage.fs.mkdirSync(path, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', 'disk', path])
    mounts.push(path)
    stage.fs.writeFileSync(`${path}/file`, '')
    return path
  }
  /** As kubelet's call: what the reply would report. */
  async function call(pod: string, options: Record<string, string> = {}): Promise<string | undefined> {
    const directory = stage.podDirectory(pod)
    stage.fs.mkdirSync(directory, { recursive: true })
    const request = parseFlexVolumeRequest(
      directory,
      JSON.stringify({ source, ...options }),
      stage.config,
      volumeKindLookup,
    )
    return (await mountPodVolume(stage.session(), request)).hiddenSubmounts
  }
  const status = async () => (await runVerb(stage.session(), { verb: 'status', metrics: undefined })) as StatusDocument
  const seen = (pod: string) => stage.fs.readdirSync(`${stage.podDirectory(pod)}/disk`)
  const includeRules = (...rules: object[]) => {
    stage.config = { ...stage.config, allow: rules }
  }
  const RULE = () => ({ sources: [source], submounts: 'include' as const })

  it('makes a new mount fail that may be written to, which leaves nothing', async () => {
    mountDisk()
    for (const options of [{}, { submounts: 'refuse' }, { submounts: 'refuse', 'kubernetes.io/readwrite': 'ro' }]) {
      await expect(call('a', options)).rejects.toThrow(
        `source "${source}" has mounts inside that the pod would not see: "${source}/disk" (tmpfs): set option "submounts"`,
      )
      expect(stage.layers('a')).toEqual([])
    }
    expect((await status()).mounts).toEqual([])
  })

  it('is hidden from a pod that requests it or only reads, and named in each reply', async () => {
    mountDisk()
    const named = `mounts inside of source "${source}" are hidden from the pod: "${source}/disk" (tmpfs)`
    for (const options of [{ submounts: 'hide' }, { 'kubernetes.io/readwrite': 'ro' }]) {
      for (let times = 0; times < 2; times++) expect(await call('a', options)).toBe(named)
      expect(seen('a')).toEqual(['beneath'])
      await stage.unmount('a')
    }
  })

  it('never makes a repeat, a heal or a repeat after a lost record fail', async () => {
    expect(await call('a')).toBeUndefined()
    mountDisk()
    expect(await call('a')).toBeUndefined()
    execFileSync('umount', [stage.podDirectory('a')])
    expect(await stage.heal()).toMatchObject([{ state: 'missing', action: 'mounted' }])
    stage.fs.rmSync(`${stage.config.stateDir}/mounts`, { recursive: true })
    await call('a')
    expect(stage.layers('a')).toHaveLength(1)
    await expect(call('b')).rejects.toThrow('has mounts inside')
  })

  it('is reported by status, doctor and plan, also if it was mounted after the volume', async () => {
    await call('a')
    expect((await status()).mounts).toMatchObject([{ hiddenSubmounts: null }])
    expect([...checkHiddenMounts(stage.session())]).toEqual([])
    const path = mountDisk()
    const hidden = { count: 1, examples: [path] }
    expect((await status()).mounts).toMatchObject([{ state: 'healthy', hiddenSubmounts: hidden }])
    expect(formatOutputLines(formatStatus(await status(), Date.now()), false)).toContain(
      `mounts inside of its source are hidden from the pod: "${path}"`,
    )
    expect([...checkHiddenMounts(stage.session())]).toMatchObject([
      { level: 'warning', text: expect.stringContaining(path) },
    ])
    const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const
    const plan = (await runVerb(stage.session(), { verb: 'plan', directory: source, fsGroup })) as PlanDocument
    expect(plan.submounts).toEqual(hidden)
    await stage.unmount('a')
    await call('a', { submounts: 'hide' })
    expect([...checkHiddenMounts(stage.session())]).toMatchObject([
      { level: 'ok', text: expect.stringContaining(path) },
    ])
  })

  it('is ignored if kubelet or modekeep mounted it', async () => {
    for (const name of ['kubelet/pods/u/volumes/kubernetes.io~secret/v', 'kubelet/plugins/kubernetes.io/csi/v']) {
      mountDisk(name)
    }
    expect(await call('a')).toBeUndefined()
    expect((await status()).mounts).toMatchObject([{ hiddenSubmounts: null }])
    includeRules({ ...RULE(), sources: [source, `${source}/*`] })
    await expect(call('b', { submounts: 'include' })).rejects.toThrow('has mounts of kubelet or modekeep inside')
  })

  describe('with submounts "include"', () => {
    const include = { submounts: 'include' }

    it('is refused without a rule for submounts, and without a rule for it as a source', async () => {
      mountDisk()
      includeRules({ sources: [source, `${source}/*`] })
      await expect(call('a', include)).rejects.toThrow('does not have submounts "include"')
      includeRules(RULE())
      await expect(call('a', include)).rejects.toThrow(`may not have bind "${source}/disk"`)
      includeRules(RULE(), { sources: [`${source}/*`], readOnly: true })
      await expect(call('a', include)).rejects.toThrow('is for reading')
      expect(stage.layers('a')).toEqual([])
    })

    it('is shown with the flags of the volume, privately, and ends with it', async () => {
      const path = mountDisk()
      mountDisk('disk/deep')
      execFileSync('mount', ['--make-rshared', path])
      includeRules(RULE(), { sources: [`${source}/*`] })
      const options = { ...include, mountOptions: 'noexec', 'kubernetes.io/readwrite': 'ro' }
      for (let times = 0; times < 2; times++) expect(await call('a', options)).toBeUndefined()
      const directory = stage.podDirectory('a')
      const rows = stage.fs
        .readFileSync('/proc/self/mountinfo', 'utf8')
        .split('\n')
        .filter((line) => line.split(' ')[4]?.startsWith(directory))
      expect(rows).toHaveLength(3)
      for (const row of rows) expect(row).toMatch(/ ro,nosuid,nodev,noexec,\S+ - /)
      expect(seen('a').sort()).toEqual(['deep', 'file'])
      expect((await status()).mounts).toMatchObject([{ hiddenSubmounts: null }])
      const later = mountDisk('disk/later')
      expect(seen('a')).not.toContain('later/file')
      expect((await status()).mounts).toMatchObject([{ hiddenSubmounts: { count: 1, examples: [later] } }])
      await stage.unmount('a')
      expect(stage.fs.readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(directory)
      stage.fs.rmdirSync(directory)
    })

    it('is refused if it cannot be cloned, and with an ownership that concerns one file system', async () => {
      const path = mountDisk()
      execFileSync('mount', ['--make-unbindable', path])
      includeRules(RULE(), { sources: [`${source}/*`] })
      await expect(call('a', include)).rejects.toThrow(`does not clone unbindable mounts: "${path}" (tmpfs)`)
      for (const ownership of ['walk', 'idmap', 'auto']) {
        await expect(call('a', { ...include, ownership })).rejects.toThrow(
          `option "submounts" is "include" but ownership is "${ownership}"`,
        )
      }
    })

    it('is repaired with its submounts after it was unmounted', async () => {
      mountDisk()
      includeRules(RULE(), { sources: [`${source}/*`] })
      await call('a', include)
      execFileSync('umount', ['-l', stage.podDirectory('a')])
      expect(await stage.heal()).toMatchObject([{ state: 'missing', action: 'mounted' }])
      expect(seen('a')).toEqual(['file'])
    })

    it('is not repaired completely if a new submount is not allowed, and the rest is unchanged', async () => {
      mountDisk()
      includeRules(RULE(), { sources: [`${source}/disk`] })
      await call('a', include)
      mountDisk('other')
      await call('a', include)
      expect(seen('a')).toEqual(['file'])
      execFileSync('umount', ['-l', stage.podDirectory('a')])
      expect(await stage.heal()).toMatchObject([{ action: 'failed', reason: expect.stringContaining('/other') }])
    })
  })
})
