import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { Daemon } from '../node/daemon.ts'
import { INSTALLED } from '../node/drivers.ts'
import type { TestNode } from '../node/node.ts'
import type { Pod } from '../node/pod.ts'
import { until } from '../node/until.ts'
import type { Case } from './case.ts'

const CONFIG = 'cat /data'

/** As kubelet writes ConfigMaps: the files are links through `..data` to a directory that is swapped and then removed. */
export function write(directory: string, version: number): void {
  fs.mkdirSync(`${directory}/..v${version}`, { recursive: true })
  fs.writeFileSync(`${directory}/..v${version}/config`, `version ${version}\n`)
  fs.symlinkSync(`..v${version}`, `${directory}/..data_tmp`)
  fs.renameSync(`${directory}/..data_tmp`, `${directory}/..data`)
  if (version === 1) fs.symlinkSync('..data/config', `${directory}/config`)
  else fs.rmSync(`${directory}/..v${version - 1}`, { recursive: true })
}

export async function podWithConfig(node: TestNode, name: string): Promise<{ pod: Pod; source: string }> {
  const source = `${node.volumes}/${name}`
  write(source, 1)
  const pod = await node.run({ name, driver: 'modekeep', options: { source, subPath: 'config' } })
  assert.equal((await pod.exec(CONFIG)).text, 'version 1')
  return { pod, source }
}

const watched: Case = {
  name: "a container starts again after an atomic update of its subPath's source while heal watches",
  when: 'together',
  small: true,
  async run({ node }) {
    const heal = new Daemon('heal', node.elsewhere, [INSTALLED, 'heal', '--watch'], process.env)
    heal.start()
    try {
      const { pod, source } = await podWithConfig(node, 'flipped')
      const theirs = `${node.volumes}/flipped-naive`
      write(theirs, 1)
      const wish = { name: 'flipped-naive', driver: 'naive', options: { source: theirs } } as const
      const volumeMounts = [{ name: 'v', mountPath: '/data', subPath: 'config' }]
      const other = await node.run({ ...wish, container: { volumeMounts } })
      for (const directory of [source, theirs]) write(directory, 2)
      await healed(pod)
      heal.mustRun()
      const ends = [await startAgain(pod), await startAgain(other)]
      await node.remove(pod, other)
      assert.equal(ends[0], 'version 2')
      return { modekeep: `started, sees ${ends[0]}`, naive: `kubelet's own subPath: ${ends[1]}` }
    } finally {
      await heal.stop('SIGKILL')
    }
  },
}

const unwatched: Case = {
  name: 'without heal a container does not start after an atomic update, and after one heal it starts by itself',
  // On a node without another heal --watch.
  when: 'alone',
  async run({ node }) {
    const { pod, source } = await podWithConfig(node, 'unwatched')
    write(source, 2)
    const first = await startAgain(pod)
    execFileSync(INSTALLED, ['heal'])
    await healed(pod)
    await until('it runs by itself', () => pod.isRunning())
    const { text } = await pod.exec(CONFIG)
    await node.remove(pod)
    assert.equal(text, 'version 2')
    return { modekeep: `before: ${first}; after: started, sees ${text}` }
  },
}

const overRestart: Case = {
  name: 'a kubelet restart shows the next container the new file of an updated subPath, in one mount',
  when: 'restarts',
  async run({ node, threeRestarts }) {
    const { pod, source } = await podWithConfig(node, 'restarted')
    write(source, 2)
    await threeRestarts(pod)
    await healed(pod)
    const layers = pod.layers().length
    const seen = await startAgain(pod)
    await node.remove(pod)
    assert.equal(layers, 1)
    assert.equal(seen, 'version 2')
    return { modekeep: `sees ${seen}, ${layers} mount` }
  },
}

/** Waits until the file that is mounted is there again under its name. */
export async function healed(pod: Pod): Promise<void> {
  await until('the new file is mounted', () => !/\/\/deleted$/.test(pod.layers().at(-1)?.root ?? '//deleted'))
}

/** Kills the container. Returns what it sees when it runs again, or why it cannot. */
export async function startAgain(pod: Pod): Promise<string> {
  const before = await pod.restarts()
  process.kill(await pod.process(), 'SIGKILL')
  let message = ''
  await until(`${pod.uid} is started, or not`, async () => {
    message = (await pod.failure()) ?? ''
    return message !== '' || ((await pod.restarts()) > before && (await pod.isRunning()))
  })
  return message
    ? `not started, ${/"?([^:"]*: [^:"]*)"?$/.exec(message)?.[1] ?? message}`
    : (await pod.exec(CONFIG)).text
}

export const FLIPPED = [overRestart, watched]
export const UNWATCHED = [unwatched]
