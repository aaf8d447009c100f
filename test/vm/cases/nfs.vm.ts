import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOutageSwitch, waitUntil } from '../network/faults.ts'
import {
  INTERRUPTED_RESTORE_TITLE,
  INTERRUPTED_WALK_TITLE,
  interruptRestore,
  interruptWalk,
  MANY_FILES,
} from '../network/interrupted.ts'
import { createServerNetwork, removeServerNetwork } from '../network/namespace.ts'
import { KernelNfsServer, NFS_VERSIONS, type NfsVersion } from '../network/nfs-server.ts'
import { GROUP, listOwnership, ServerNode, SUCCESS } from '../network/node.ts'

let top: string
let server: KernelNfsServer
beforeAll(async () => {
  top = fs.mkdtempSync(`${tmpdir()}/modekeep-nfs-`)
  await createServerNetwork()
  server = new KernelNfsServer(`${top}/disk`)
  await server.start()
})
afterAll(() => {
  server.stop()
  removeServerNetwork()
  fs.rmSync(top, { recursive: true, force: true })
})

let made = 0
/** Makes a directory below an export, and the options of a pod that mounts it. */
function makeVolume(version: NfsVersion, { name = 'rw', files = 20, mount = '' } = {}) {
  const directory = `volume${made++}`
  const path = server.make(name as 'rw', directory, files)
  const source = server.source(version, name as 'rw', directory)
  return { path, options: { source, mountOptions: server.options(version, mount) } }
}

const walked = { ownership: 'walk', restoreOnUnmount: 'true' }

describe.each(NFS_VERSIONS)('NFS %s of the kernel server', (version) => {
  it('without ownership, a mount shows the files as the server has them', async () => {
    const node = new ServerNode('nfs')
    const { path, options } = makeVolume(version)
    const before = listOwnership(path)
    expect(await node.mount('a', options)).toMatchObject(SUCCESS)
    expect(listOwnership(node.podDirectory('a'))).toEqual(before)
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
    expect(listOwnership(path)).toEqual(before)
    expect(node.mountState()).toEqual([])
  })

  it.each(['walk', 'auto'])(
    'ownership %s applies the group, and the unmount restores every inode',
    async (ownership) => {
      const node = new ServerNode('nfs')
      const { path, options } = makeVolume(version)
      const before = listOwnership(path)
      expect(await node.mount('a', { ...options, ...walked, ownership })).toMatchObject(SUCCESS)
      expect(listOwnership(path).filter((line) => !line.includes(`:${GROUP} `))).toEqual([])
      expect(await node.unmount('a')).toMatchObject(SUCCESS)
      expect(listOwnership(path)).toEqual(before)
      expect(node.mountState()).toEqual([])
    },
  )

  it('a walk of an export that squashes root is refused with the remedy, and changes nothing', async () => {
    const node = new ServerNode('nfs')
    const { path, options } = makeVolume(version, { name: 'squash' })
    const before = listOwnership(path)
    const { status, message } = await node.mount('a', { ...options, ...walked })
    expect([status, message]).toEqual(['Failure', expect.stringMatching(/squashes root.*no_root_squash/)])
    expect(listOwnership(path)).toEqual(before)
    expect([node.layers('a'), node.mountState()]).toEqual([[], []])
  })

  it('a walk of a read-only export is refused with the remedy, and changes nothing', async () => {
    const node = new ServerNode('nfs')
    const { path, options } = makeVolume(version, { name: 'readonly' })
    const before = listOwnership(path)
    const { status, message } = await node.mount('a', { ...options, ...walked })
    expect([status, message]).toEqual(['Failure', expect.stringMatching(/read-only.*: /)])
    expect(listOwnership(path)).toEqual(before)
    expect([node.layers('a'), node.mountState()]).toEqual([[], []])
  })

  it('ownership idmap is refused, and names what to use', async () => {
    const node = new ServerNode('nfs')
    const { options } = makeVolume(version)
    const { status, message } = await node.mount('a', { ...options, ownership: 'idmap' })
    expect([status, message]).toEqual(['Failure', expect.stringMatching(/cannot mount nfs4? idmapped|idmap.*auto/)])
    expect([node.layers('a'), node.mountState()]).toEqual([[], []])
  })

  it('a directory that the server deletes and makes anew is mounted again by the next mount call', async () => {
    const node = new ServerNode('nfs')
    const { path, options } = makeVolume(version, { mount: 'noac' })
    expect(await node.mount('a', options)).toMatchObject(SUCCESS)
    fs.rmSync(path, { recursive: true })
    fs.mkdirSync(path)
    fs.writeFileSync(`${path}/anew`, '')
    expect(await node.mount('a', options)).toMatchObject(SUCCESS)
    expect(fs.readdirSync(node.podDirectory('a'))).toEqual(['anew'])
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
    expect([node.layers('a'), node.mountState()]).toEqual([[], []])
  })

  it('files that the server deletes in the middle of a walk are skipped, and the walk completes', async () => {
    const node = new ServerNode('nfs')
    const { path, options } = makeVolume(version, { files: 3000 })
    const walk = node.mount('a', { ...options, ...walked })
    const names = fs.readdirSync(path).filter((name) => name.startsWith('file'))
    await waitUntil('the walk changes no file', () =>
      names.some((name) => fs.statSync(`${path}/${name}`).gid === GROUP),
    )
    const deleted = names.filter((name) => fs.statSync(`${path}/${name}`).gid !== GROUP).filter((_, at) => at % 2 === 0)
    for (const name of deleted) fs.rmSync(`${path}/${name}`)
    console.log(`${deleted.length} files deleted`)
    expect(await walk).toMatchObject(SUCCESS)
    expect(listOwnership(path).filter((line) => !line.includes(`:${GROUP} `))).toEqual([])
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
    expect(listOwnership(path).filter((line) => !line.includes(':100 '))).toEqual([])
    expect(node.layers('a')).toEqual([])
  })

  it('a walked directory that the server deleted is unmounted', async () => {
    const node = new ServerNode('nfs')
    const { path, options } = makeVolume(version, { mount: 'noac' })
    expect(await node.mount('a', { ...options, ...walked })).toMatchObject(SUCCESS)
    fs.rmSync(path, { recursive: true })
    expect(await node.unmount('a')).toMatchObject(SUCCESS)
    expect(node.layers('a')).toEqual([])
  })

  const prepareOutage = () => ({
    node: new ServerNode('nfs'),
    ...makeVolume(version, { files: MANY_FILES }),
    ...createOutageSwitch('the network cut'),
  })

  it(`${INTERRUPTED_WALK_TITLE}: a cut network`, () => interruptWalk(prepareOutage()))

  it(`${INTERRUPTED_RESTORE_TITLE}: a cut network`, () => interruptRestore(prepareOutage()))
})
