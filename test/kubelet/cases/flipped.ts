import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { Daemon } from '../node/daemon.ts'
import { INSTALLED } from '../node/drivers.ts'
import type { Pod } from '../node/pod.ts'
import { until } from '../node/until.ts'
import type { Case } from './case.ts'
import { control } from './tree.ts'

/** As kubelet writes ConfigMaps: the files are links through `..data` to a directory that is swapped and then removed. */
function write(directory: string, version: number): void {
  fs.mkdirSync(`${directory}/..v${version}`, { recursive: true })
  fs.writeFileSync(`${directory}/..v${version}/config`, `version ${version}\n`)
  fs.symlinkSync(`..v${version}`, `${directory}/..data_tmp`)
  fs.renameSync(`${directory}/..data_tmp`, `${directory}/..data`)
  if (version === 1) fs.symlinkSync('..data/config', `${directory}/config`)
  else fs.rmSync(`${directory}/..v${version - 1}`, { recursive: true })
}

const flipped: Case = {
  name: 'a container is started again after the source of its subPath was flipped, and sees the new file',
  when: 'together',
  async run({ node }) {
    const [ours, theirs] = [`${node.volumes}/flipped`, `${node.volumes}/flipped-naive`]
    for (const directory of [ours, theirs]) write(directory, 1)
    const heal = new Daemon('heal', node.elsewhere, [INSTALLED, 'heal', '--watch'], process.env)
    heal.start()
    try {
      const mine = await node.run({ name: 'flipped', driver: 'modekeep', options: { source: ours, subPath: 'config' } })
      const subPath = { volumeMounts: [{ name: 'v', mountPath: '/data', subPath: 'config' }] }
      const other = await node.run({
        name: 'flipped-naive',
        driver: 'naive',
        options: { source: theirs },
        container: subPath,
      })
      assert.equal((await mine.exec('cat /data')).text, 'version 1')
      for (const directory of [ours, theirs]) write(directory, 2)
      await end(other)
      const failure = await startFailure(other)
      heal.mustRun()
      const before = await mine.restarts()
      await end(mine)
      await mine.restarted(before)
      const { text } = await mine.exec('cat /data')
      await node.remove(mine, other)
      assert.equal(text, 'version 2')
      control('the container does not start', /no such file or directory/.test(failure), true)
      return { modekeep: `started, "${text}"`, naive: `kubelet's subPath: ${failure}` }
    } finally {
      await heal.stop('SIGKILL')
    }
  },
}

async function end(pod: Pod): Promise<void> {
  process.kill(await pod.process(), 'SIGKILL')
}

/** What the kubelet says of a container that it cannot start; '' if it starts it. */
async function startFailure(pod: Pod): Promise<string> {
  const before = await pod.restarts()
  let message = ''
  await until(`${pod.uid} is started, or not`, async () => {
    const [container] = (await pod.status())?.containerStatuses ?? []
    const { waiting, terminated } = (container?.state ?? {}) as Record<string, { message?: string } | undefined>
    message = waiting?.message ?? terminated?.message ?? ''
    if (/no such file/.test(message)) return true
    return (await pod.restarts()) > before && (await pod.isRunning())
  })
  return message.replace(/.*(error mounting|stat) /, '$1 ').slice(0, 160)
}

export const FLIPPED = [flipped]
