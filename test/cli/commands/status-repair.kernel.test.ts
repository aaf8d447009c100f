import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSelectedStatus } from '../../../src/cli/commands/status.ts'
import { formatStatus } from '../../../src/cli/commands/status-text.ts'
import { splitLine } from '../../helpers/line.ts'
import { addSkipReason, cannotMountWith } from '../../helpers/needs.ts'
import { kernelStage, type Stage } from '../../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../../helpers/tree.ts'

const cannot = cannotMountWith('mkfs.ext4')

describe.skipIf(cannot !== '')(addSkipReason('the next steps of status', cannot), () => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = kernelStage('ext4')
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, SIX_FILES)
  })
  afterEach(() => stage.close())

  const steps = async () => {
    const document = await readSelectedStatus(stage.session())
    const lines = formatStatus(document, Date.now()).map((line) => splitLine(line).text)
    return { document, lines, next: lines.slice(lines.indexOf('next') + 1).join('\n') }
  }

  it('status does not advise heal for a mount whose source is deleted, and prints the remedy in the line of the mount', async () => {
    await stage.mount('a', { source, ownership: 'none' })
    fs.renameSync(source, `${source}.away`)
    const { document, next } = await steps()
    expect(document.mounts).toMatchObject([{ state: 'stale', repair: 'failed' }])
    expect(document.mounts[0]?.reason).toContain('does not exist on this node: create the directory')
    expect(next).toContain('heal cannot repair what is stale')
    expect(next).not.toContain('"modekeep heal" repairs')
    fs.renameSync(`${source}.away`, source)
  })

  it('status does not advise heal for a mapped mount of a pod with a user namespace if no NRI plugin runs', async () => {
    await stage.mount('a', { source, ownership: 'idmap', 'kubernetes.io/fsGroup': '2000' })
    const podDirectory = stage.podDirectory('a').replace(/\/volumes\/.*$/, '')
    fs.writeFileSync(`${podDirectory}/userns`, '{}')
    const { document, next } = await steps()
    expect(document.mounts).toMatchObject([{ state: 'stale', repair: 'failed' }])
    expect(document.mounts[0]?.reason).toContain('have "modekeep nri" run on the node')
    expect(next).toContain('heal cannot repair what is stale')
    expect(next).not.toContain('"modekeep heal" repairs')
  })

  it('status advises heal for a missing mount next to a mount that heal cannot repair', async () => {
    await stage.mount('a', { source, ownership: 'none' })
    const other = `${stage.top}/volumes/other`
    makeTree(stage.fs, other, SIX_FILES)
    await stage.mount('b', { source: other, ownership: 'none' })
    fs.renameSync(source, `${source}.away`)
    execFileSync('umount', [stage.podDirectory('b')])
    const { next } = await steps()
    expect(next).toContain('"modekeep heal" repairs what is missing;')
    expect(next).toContain('heal cannot repair what is stale')
  })
})
