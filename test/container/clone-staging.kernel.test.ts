import * as fs from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createContainerDirectory, removeEmptyStagingMount } from '../../src/container/clone-staging.ts'
import { deferHandleClose, type Host } from '../../src/kernel/host.ts'
import type { Session } from '../../src/state/session.ts'
import { isRoot, kernelStage } from '../helpers/stage.ts'

const [FIRST, SECOND] = ['a'.repeat(64), 'b'.repeat(64)]

describe.skipIf(!isRoot)('the tmpfs of clones', () => {
  it("is not removed by another call while a container's directory is created in it", async () => {
    const stage = kernelStage('tmpfs')
    onTestFinished(stage.close)
    const session = stage.session()
    const path = `${stage.config.stateDir}/nri/mounts`
    onTestFinished(() => {
      fs.rmSync(`${path}/${SECOND}`, { recursive: true, force: true })
      removeEmptyStagingMount(session)
    })
    // An empty one is left.
    const first = await createContainerDirectory(session, FIRST)
    deferHandleClose(session.host.inodes, first)[Symbol.dispose]()
    fs.rmdirSync(`${path}/${FIRST}`)
    const inodes: Host['inodes'] = {
      ...session.host.inodes,
      createDirectory(parent, name, mode) {
        removeEmptyStagingMount(session)
        session.host.inodes.createDirectory(parent, name, mode)
      },
    }
    const racing: Session = { ...session, host: { ...session.host, inodes } }
    const second = await createContainerDirectory(racing, SECOND)
    deferHandleClose(session.host.inodes, second)[Symbol.dispose]()
    expect(fs.existsSync(`${path}/${SECOND}`)).toBe(true)
  })
})
