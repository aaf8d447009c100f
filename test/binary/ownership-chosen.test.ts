import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'

const title = `ownership: auto${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  async function mountAuto(node: BinaryNode, source: string) {
    const options = { source, ownership: 'auto', 'kubernetes.io/mounterArgs.FsGroup': '2000' }
    return node.call('mount', node.podDirectory('a'), JSON.stringify(options))
  }

  async function statusOf(node: BinaryNode): Promise<{ ownership: string; why: string; group: number }[]> {
    return JSON.parse((await node.start(['status', '--json']).ended).text).mounts
  }

  it('ownership "auto" reports the chosen method "idmap" in each reply and in status', async () => {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    execFileSync('mount', ['-t', 'tmpfs', 'volumes', node.volumes])
    fs.mkdirSync(source)
    fs.chmodSync(source, 0o2775)
    const reply = { status: 'Success', message: 'ownership idmap: the file system maps groups' }
    for (let call = 0; call < 3; call++) expect(await mountAuto(node, source)).toEqual(reply)
    expect(fs.statSync(node.podDirectory('a')).gid).toBe(2000)
    expect(fs.statSync(source).gid).toBe(0)
    expect(await statusOf(node)).toMatchObject([
      { ownership: 'idmap', why: 'the file system maps groups', group: 2000 },
    ])
    expect(node.logLines().at(-2)).toMatchObject({ verb: 'mount', decision: 'ready' })
  })

  it('ownership "auto" reports in the reply and in status why it chose a walk', async () => {
    const node = new BinaryNode()
    const source = mountOverlay(node)
    const why = "this node's kernel cannot mount overlay idmapped"
    expect(await mountAuto(node, source)).toEqual({ status: 'Success', message: `ownership walk: ${why}` })
    expect(fs.statSync(source).gid).toBe(2000)
    expect(await statusOf(node)).toMatchObject([{ ownership: 'walk', why, group: 2000 }])
  })

  it('a volume on overlayfs is found after a copy-up changed birth times: gc keeps its journal, and restore succeeds', async () => {
    const node = new BinaryNode()
    const source = mountOverlay(node)
    await mountAuto(node, source)
    await node.call('unmount', node.podDirectory('a'))
    expect(fs.statSync(source).gid).toBe(2000)
    const { volumes } = JSON.parse((await node.start(['status', '--json']).ended).text)
    const volume: string = volumes[0].volume
    const given = await node.start(['gc', '--forget', volume]).ended
    expect([given.code, given.text]).toEqual([1, expect.stringContaining(`volume ${volume} is at ${source}`)])
    expect((await node.start(['restore', volume]).ended).code).toBe(0)
    expect(fs.statSync(source).gid).toBe(0)
  })

  /** @returns a directory of the node's volumes where an overlay is mounted */
  function mountOverlay(node: BinaryNode): string {
    execFileSync('mount', ['-t', 'tmpfs', 'volumes', node.volumes])
    const places = ['lower', 'upper', 'work', 'merged'].map((name) => `${node.volumes}/${name}`)
    for (const directory of places) fs.mkdirSync(directory)
    const [lower, upper, work, merged = ''] = places
    const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`
    execFileSync('mount', ['-t', 'overlay', '-o', layers, 'overlay', merged])
    return merged
  }
})
