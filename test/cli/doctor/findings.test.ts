import { describe, expect, it } from 'vitest'
import { runDoctor } from '../../../src/cli/commands/doctor.ts'
import { checkConfiguration } from '../../../src/cli/doctor/configuration.ts'
import { checkHelperPrograms, checkKernel, checkSystemCalls } from '../../../src/cli/doctor/node.ts'
import { checkFreeSpace } from '../../../src/cli/doctor/paths.ts'
import { checkRecordedVolumes } from '../../../src/cli/doctor/records.ts'
import { createFault } from '../../../src/errors/fault.ts'
import { Refusal } from '../../../src/errors/refusal.ts'
import type { KernelFeature, NodeDiagnosis } from '../../../src/kernel/linux/diagnosis.ts'
import { memoryStage } from '../../helpers/stage.ts'

const MIB = 2 ** 20

const diagnosis: NodeDiagnosis = {
  features: () => [],
  release: () => '6.12.0',
  hostName: () => 'node-1',
  selfTest: () => [],
  findProgram: (program) => {
    if (program === 'mount.nfs')
      throw new Refusal(
        createFault('internal', 'mount.nfs is not there', 'install nfs-common', 'it is looked for in /bin'),
      )
    return `/usr/bin/${program}`
  },
  space: () => ({ bytes: 1024 * MIB, inodes: 1_000_000 }),
  isSameFile: () => true,
  isListening: () => false,
}

describe('doctor, for the kernel,', () => {
  const missing = (name: KernelFeature['name'], errno = 'ENOSYS'): KernelFeature => ({
    name,
    works: false,
    detail: `the kernel reports ${errno}`,
    errno,
  })

  it.each([
    [missing('open_tree'), 'fault', 'use Linux 5.2 or newer'],
    [missing('openat2'), 'warning', 'use Linux 5.6 or newer'],
    [missing('user namespace', 'ENOSPC'), 'warning', 'raise the sysctl user.max_user_namespaces'],
    [missing('fsopen', 'EPERM'), 'fault', 'run it as root on the node itself'],
    [missing('fchmodat2'), 'warning', 'use Linux 6.6 or newer', '5.19.0-50-generic'],
    [missing('fchmodat2'), 'warning', 'not in a container with a filter of system calls', '6.6.1'],
    [missing('fchmodat2'), 'warning', 'not in a container with a filter of system calls', '7.0.0-rc1'],
  ])('reports a kernel without %j as a %s: %s', (feature, level, remedy, release = '4.19.0') => {
    expect([...checkKernel([feature], release)]).toMatchObject([{ level, remedy: expect.stringContaining(remedy) }])
  })

  it('reports all working kernel features in one line', () => {
    const features: KernelFeature[] = [
      { name: 'open_tree', works: true, detail: '' },
      { name: 'fsopen', works: true, detail: '' },
    ]
    expect([...checkKernel(features, '6.12.0')]).toMatchObject([
      { level: 'ok', text: 'tried and working: open_tree, fsopen' },
    ])
  })

  it('reports a fault if the result of a system call differs from that of Node', () => {
    const tests = [
      { name: 'statx', difference: '' },
      { name: 'getdents64', difference: 'a name is missing' },
    ]
    expect([...checkSystemCalls(tests)].map(({ level }) => level)).toEqual(['ok', 'fault'])
  })
})

describe('doctor, for the node,', () => {
  it('checks the helper programs of allowed volume types, and prints how to install a missing program', () => {
    const { config } = memoryStage()
    expect([...checkHelperPrograms(diagnosis, config)]).toMatchObject([{ level: 'ok' }])
    const allowed = { ...config, allow: [{ fsTypes: ['bind', 'nfs'] }, { fsTypes: ['fuse.sshfs'] }] }
    expect([...checkHelperPrograms(diagnosis, allowed)]).toMatchObject([
      {
        level: 'fault',
        text: 'mount.nfs is not there',
        remedy: expect.stringContaining('install nfs-common, or take'),
      },
      { level: 'ok', text: 'sshfs is /usr/bin/sshfs' },
      { level: 'ok', text: 'fusermount3 is /usr/bin/fusermount3' },
    ])
  })

  it.each([
    [{ bytes: 1024 * MIB, inodes: undefined }, 'ok'],
    [{ bytes: 100 * MIB, inodes: 1_000_000 }, 'warning'],
    [{ bytes: 1024 * MIB, inodes: 500 }, 'warning'],
    [{ bytes: MIB, inodes: 1_000_000 }, 'fault'],
    [{ bytes: 1024 * MIB, inodes: 3 }, 'fault'],
  ])('reports free space %j as %s', (space, level) => {
    const { host, top } = memoryStage()
    expect([...checkFreeSpace(host, { ...diagnosis, space: () => space }, `${top}/state`)]).toMatchObject([{ level }])
  })

  it('reports every fault of the configuration, and sources that do not exist', async () => {
    const stage = memoryStage()
    const { top, config } = stage
    const asked = {
      ...config,
      allow: [
        {
          namespaces: ['shop'],
          sources: [`${top}/volumes/{namespace}/*`, `${top}/none/*`, '/*', 'server:/export/*'],
        },
      ],
    }
    const configuration = {
      file: '/none.json',
      faults: [createFault('config-invalid', 'one'), createFault('config-invalid', 'two')],
    }
    const found = await Array.fromAsync(checkConfiguration({ ...stage.session(), config: asked }, configuration))
    expect(found.map(({ level }) => level)).toEqual([
      ...['fault', 'fault', 'ok', 'ok'],
      ...['warning', 'warning', 'warning'],
    ])
    expect(found.slice(4)).toMatchObject([
      { remedy: expect.stringContaining('or mount its file system with nosuid') },
      { remedy: `mkdir -p ${top}/none` },
      { text: 'pods may mount any directory of the node' },
    ])
  })

  it('reports the size of all records, and warns near the quota', async () => {
    const stage = memoryStage()
    const place = `${stage.config.stateDir}/ownership/ab-5-6`
    stage.fs.mkdirSync(place, { recursive: true })
    let capacity: number | undefined = 200 * MIB
    stage.host.files = { ...stage.host.files, capacity: () => capacity }
    const found = async (bytes: number) => {
      stage.fs.writeFileSync(`${place}/notes`, Buffer.alloc(bytes))
      const findings = await Array.fromAsync(checkRecordedVolumes(stage.session()))
      return findings.filter(({ text }) => text.startsWith('the records of all volumes take'))
    }
    expect(await found(3 * MIB)).toMatchObject([
      { level: 'ok', text: 'the records of all volumes take 3 MiB of the 20 MiB that they may take' },
    ])
    expect(await found(17 * MIB)).toMatchObject([
      { level: 'warning', remedy: expect.stringContaining('modekeep restore ab-5-6') },
    ])
    capacity = undefined
    expect(await found(17 * MIB)).toEqual([])
  })

  it('continues with the other checks if one check throws', async () => {
    const stage = memoryStage()
    const broken = {
      ...diagnosis,
      selfTest: (): never => {
        throw new Error('no memory')
      },
    }
    const configuration = { file: '/none.json', faults: [] }
    const versions = { version: '1.2.3', node: '26.0.0', glibc: '2.36-9', arch: 'x64' }
    const context = { diagnosis: broken, configuration, executable: undefined, versions }
    const found = await runDoctor(stage.session(), context)
    const unchecked = found.findings.filter(({ text }) => text.startsWith('this could not be checked'))
    expect(unchecked.map(({ area, level }) => [area, level])).toContainEqual(['system calls', 'fault'])
    const texts = found.findings.map(({ text }) => text)
    expect(texts).toEqual(
      expect.arrayContaining(['modekeep 1.2.3 with Node 26.0.0 and glibc 2.36-9', 'volumes on record: 0']),
    )
    expect(found.ok + found.warnings + found.faults).toBe(found.findings.length)
  })
})
