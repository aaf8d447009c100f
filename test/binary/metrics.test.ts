import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { METRIC_FAMILIES } from '../../src/metrics/samples.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'
import { parseExposition, type Sample } from '../metrics/exposition.ts'

const title = `status --prometheus${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

const WALK = { ownership: 'walk', 'kubernetes.io/mounterArgs.FsGroup': '2000' }

describe.skipIf(!isRoot)(title, () => {
  async function metrics(node: BinaryNode): Promise<Sample[]> {
    const { text, code } = await node.start(['status', '--prometheus']).ended
    expect({ code, text }).toMatchObject({ code: 0 })
    return parseExposition(text).samples
  }

  /** Of the samples with this name and these labels; what is not 0. */
  function values(
    samples: readonly Sample[],
    name: keyof typeof METRIC_FAMILIES | `${string}_count`,
  ): Record<string, number> {
    const own = samples.filter((sample) => sample.name === name && sample.value !== 0)
    return Object.fromEntries(own.map(({ labels, value }) => [Object.values(labels).join(' '), value]))
  }

  function volume(node: BinaryNode, name: string): string {
    const source = `${node.volumes}/${name}`
    fs.mkdirSync(source)
    for (const file of ['one', 'two']) fs.writeFileSync(`${source}/${file}`, '')
    fs.symlinkSync('one', `${source}/link`)
    return source
  }

  it('counts calls of kubelet and commands, and reports the current state', async () => {
    const node = new BinaryNode()
    expect(values(await metrics(node), 'modekeep_calls_total')).toEqual({})
    const source = volume(node, 'data')
    const options = JSON.stringify({ source, ...WALK, restoreOnUnmount: 'true' })
    for (let repeat = 0; repeat < 3; repeat++) await node.call('mount', node.podDirectory('a'), options)
    await node.call('mount', node.podDirectory('b'), '{"kubernetes.io/fsType":"tmpfs"}')
    expect(await node.call('mount', node.podDirectory('c'), '{"source":"/etc"}')).toMatchObject({ status: 'Failure' })

    const mounted = await metrics(node)
    expect(values(mounted, 'modekeep_info')).toEqual({
      [execFileSync(BINARY, ['version'], { encoding: 'utf8' }).split(' ')[1]?.trim() ?? '']: 1,
    })
    expect(values(mounted, 'modekeep_mounts')).toEqual({ 'bind walk healthy': 1, 'tmpfs none healthy': 1 })
    expect(values(mounted, 'modekeep_restores_pending')).toEqual({ mounted: 1 })
    expect(values(mounted, 'modekeep_calls_total')).toEqual({ 'mount success': 4, 'mount refused': 1 })
    expect(values(mounted, 'modekeep_call_duration_seconds_count')).toEqual({ mount: 5 })
    expect(values(mounted, 'modekeep_walks_total')).toEqual({ mount: 1 })
    expect(values(mounted, 'modekeep_inodes_visited_total')).toEqual({ mount: 4 })
    expect(values(mounted, 'modekeep_inodes_changed_total')).toEqual({ mount: 3 })
    expect(values(mounted, 'modekeep_inodes_left_total')).toEqual({ symlink: 1 })
    expect(values(mounted, 'modekeep_calls_logged')).toEqual({ '': 1 })

    // The source is exchanged: heal mounts the new one, which restores nothing of the old.
    fs.renameSync(source, `${source}-old`)
    volume(node, 'data')
    expect(values(await metrics(node), 'modekeep_mounts')).toMatchObject({ 'bind walk stale': 1 })
    expect((await node.start(['heal']).ended).code).toBe(0)
    const healed = await metrics(node)
    expect(values(healed, 'modekeep_heals_total')).toEqual({ 'stale replaced': 1 })
    expect(values(healed, 'modekeep_restores_pending')).toEqual({ mounted: 1, overdue: 1 })

    await node.call('unmount', node.podDirectory('a'))
    const after = await metrics(node)
    expect(values(after, 'modekeep_restores_pending')).toEqual({ overdue: 1 })
    expect(values(after, 'modekeep_inodes_changed_total')).toMatchObject({ unmount: 3 })
    const counters = (samples: readonly Sample[]) => samples.filter(({ name }) => name.endsWith('_total'))
    expect(counters(await metrics(node))).toEqual(counters(after))
  })

  it('replaces its output file atomically with mode 0644, and follows no link at the temporary name', async () => {
    const node = new BinaryNode()
    const output = `${node.top}/textfile/modekeep.prom`
    fs.mkdirSync(`${node.top}/textfile`)
    fs.writeFileSync(`${node.top}/precious`, 'precious')
    fs.symlinkSync(`${node.top}/precious`, output)
    const args = ['status', '--prometheus', '--output', output]
    const env = { MODEKEEP_CONFIG: `${node.top}/config.json` }
    const write = () =>
      spawn('/bin/sh', ['-c', 'umask 077; exec "$0" "$@"', BINARY, ...args], { env, stdio: 'inherit' })
    let isOver = false
    const writing = (async () => {
      for (let run = 0; run < 5; run++) expect(await once(write(), 'close')).toEqual([0, null])
      isOver = true
    })()
    let reads = 0
    for (; !isOver; reads++) {
      const text = fs.readFileSync(output, 'utf8')
      if (text !== 'precious') parseExposition(text)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await writing
    expect(reads).toBeGreaterThan(5)
    expect(fs.readFileSync(`${node.top}/precious`, 'utf8')).toBe('precious')
    expect(fs.readdirSync(`${node.top}/textfile`)).toEqual(['modekeep.prom'])
    expect(fs.lstatSync(output).mode).toBe(0o100644)
  })

  it('leaves its output file unchanged if it fails, and prints the reason', async () => {
    const node = new BinaryNode()
    const failed = async (output: string) => node.start(['status', '--prometheus', '--output', output]).ended
    expect(await failed(`${node.top}/none/x.prom`)).toMatchObject({
      code: 1,
      text: expect.stringMatching(
        /^modekeep: --output .*ENOENT.*name a file in a directory that is there \[command\]\n$/,
      ),
    })
    fs.mkdirSync(`${node.top}/taken`)
    expect(await failed(`${node.top}/taken`)).toMatchObject({ code: 1, text: expect.stringContaining('EISDIR') })
    expect(fs.readdirSync(node.top).filter((name) => name.endsWith('.new'))).toEqual([])
  })

  it('counts each call once if several status commands run concurrently', async () => {
    const node = new BinaryNode()
    await metrics(node)
    for (const pod of ['a', 'b']) await node.call('unmount', node.podDirectory(pod))
    const asked = await Promise.all([1, 2, 3, 4].map(() => node.start(['status', '--prometheus']).ended))
    for (const { text, code } of asked) {
      if (code === 1)
        expect(text).toBe('modekeep: another "modekeep status --prometheus" is at work: run it again [command]\n')
      else expect(values(parseExposition(text).samples, 'modekeep_calls_total')).toEqual({ 'unmount success': 2 })
    }
    expect(asked.some(({ code }) => code === 0)).toBe(true)
    expect(values(await metrics(node), 'modekeep_calls_total')).toEqual({ 'unmount success': 2 })
  })

  it("never makes kubelet's calls read or write its files", async () => {
    const node = new BinaryNode()
    await metrics(node)
    const trace = `${node.top}/trace`
    const source = volume(node, 'data')
    node.wrapper = ['strace', '-f', '-e', 'trace=%file', '-o', trace]
    await node.call('mount', node.podDirectory('a'), JSON.stringify({ source, ...WALK }))
    const touched = fs.readFileSync(trace, 'utf8')
    // The log is opened by a handle of its directory.
    expect(touched).toContain(`/${basename(node.log)}"`)
    expect(touched.split('\n').filter((line) => line.includes(`${node.state}/metrics`))).toEqual([])
  })
})
