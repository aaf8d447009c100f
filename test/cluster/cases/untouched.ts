import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { FSGROUP, look, makeFiles, SIX } from '../../kubelet/cases/tree.ts'
import { MODEKEEPS_STATE } from '../../kubelet/node/drivers.ts'
import { bind, byClaim, claimed, exec, inline, pod, podSpec, remove, running } from '../plane/pods.ts'
import type { Case } from './case.ts'

const OWNER = 1234

const none: Case = {
  name: "ownership none through CSI, inline and claimed, changes no file despite the pod's fsGroup",
  async run(cluster) {
    const names = ['none-inline', 'none-claimed']
    const sources = names.map((name) => anothers(`${cluster.volumes}/${name}`))
    const [first, second] = sources.map((source) => ({ source, ownership: 'none' })) as [Options, Options]
    const before = sources.map(facts)
    const journals = journalsOnNode()
    await bind(cluster, 'none-claimed', claimed('csi', 'none-claimed', second))
    await cluster.apply(
      pod('none-inline', podSpec([inline('csi', 'v', first)], FSGROUP)),
      pod('none-claimed', podSpec([byClaim('v', 'none-claimed')], FSGROUP)),
    )
    const seen = []
    for (const name of names) {
      await running(cluster, name)
      seen.push(await exec(cluster, name, 'id -G; stat -c "%u %g %a" /data/v/test1; cat /data/v/test1'))
    }
    const during = sources.map(facts)
    await remove(cluster, ...names)
    const expected = `1000 ${FSGROUP}\n${OWNER} ${OWNER} 644\ntest1`
    assert.deepEqual(seen, [expected, expected])
    assert.deepEqual([during, sources.map(facts)], [before, before])
    assert.deepEqual(journalsOnNode(), journals)
    return `${before.flat().length} files and directories as they were: mode, owner, group and ctime`
  },
}

type Options = { source: string; ownership: string }

/** A directory of another user's, none of it in the group of the pod. */
function anothers(directory: string): string {
  makeFiles(directory, SIX)
  fs.mkdirSync(`${directory}/inner`, { mode: 0o700 })
  makeFiles(`${directory}/inner`, { file: 0o600 })
  for (const name of ['.', 'inner', 'inner/file', ...Object.keys(SIX)]) {
    const { mode } = fs.statSync(`${directory}/${name}`)
    fs.chownSync(`${directory}/${name}`, OWNER, OWNER)
    fs.chmodSync(`${directory}/${name}`, mode)
  }
  return directory
}

const facts = (directory: string) =>
  [...look(directory)].map(([name, found]) => ({ name, owner: fs.lstatSync(`${directory}/${name}`).uid, ...found }))

/** What modekeep has recorded of inodes: with ownership none it is nothing. */
const journalsOnNode = () => fs.readdirSync(MODEKEEPS_STATE, { recursive: true, encoding: 'utf8' }).filter(isJournal)
const isJournal = (path: string) => path.endsWith('/journal.db')

export const UNTOUCHED = [none]
