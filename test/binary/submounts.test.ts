import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CsiNode } from '../frontends/csi/node.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { cannotMount } from './modekeep.ts'

/** Mounts a disk inside of a source, for the rest of the test. */
function mountInside(source: string, name = 'disk'): string {
  const path = `${source}/${name}`
  fs.mkdirSync(path)
  execFileSync('mount', ['-t', 'tmpfs', 'disk', path])
  fs.writeFileSync(`${path}/file`, '')
  onTestFinished(() => {
    execFileSync('umount', [path])
  })
  return path
}

describe.skipIf(cannotMount !== '')(`a mount inside of the source${cannotMount}`, () => {
  it('makes a FlexVolume mount fail by default, and is named in the reply if the options hide it', async () => {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    fs.mkdirSync(source)
    const path = mountInside(source)
    const mount = (options: object) =>
      node.call('mount', node.podDirectory('a'), JSON.stringify({ source, ...options }))
    expect(await mount({})).toMatchObject({
      status: 'Failure',
      message: expect.stringContaining(`has mounts inside that the pod would not see: "${path}" (tmpfs)`),
    })
    for (let times = 0; times < 2; times++) {
      expect(await mount({ submounts: 'hide' })).toEqual({
        status: 'Success',
        message: `mounts inside of source "${source}" are hidden from the pod: "${path}" (tmpfs)`,
      })
    }
    const shown = await node.start(['status']).ended
    expect(shown.text).toContain(`mounts inside of its source are hidden from the pod: "${path}"`)
    expect(await node.call('unmount', node.podDirectory('a'))).toEqual({ status: 'Success' })
  })

  it('makes a CSI publication fail by default, is hidden or included on request, and never makes a repeated call fail', async () => {
    const node = new CsiNode()
    onTestFinished(() => node.end())
    await node.serve()
    const source = node.volume('data', 1)
    expect(await node.publish(1, source)).toMatchObject({ code: 'OK' })
    const path = mountInside(source)
    expect(await node.publish(1, source)).toMatchObject({ code: 'OK' })
    expect(await node.publish(2, source)).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringMatching(`has mounts inside .*"${path}".*: set volumeAttributes "submounts" to "hide"`),
    })
    expect(fs.existsSync(node.target(2))).toBe(false)
    expect(await node.publish(2, source, { attributes: { submounts: 'hide' } })).toMatchObject({ code: 'OK' })
    expect(fs.readdirSync(`${node.target(2)}/disk`)).toEqual([])
    const include = { attributes: { submounts: 'include' } }
    expect(await node.publish(3, source, include)).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('does not have submounts "include"'),
    })
    node.configure({ allow: [{ sources: [source], submounts: 'include' }, { sources: [`${source}/*`] }] })
    for (let times = 0; times < 2; times++) expect(await node.publish(3, source, include)).toMatchObject({ code: 'OK' })
    expect(fs.readdirSync(`${node.target(3)}/disk`)).toEqual(['file'])
    for (const pod of [1, 2, 3]) expect(await node.unpublish(pod)).toMatchObject({ code: 'OK' })
    for (const pod of [1, 2, 3]) expect(fs.existsSync(node.target(pod))).toBe(false)
  })
})
