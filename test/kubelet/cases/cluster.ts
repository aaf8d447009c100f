import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { giveImage, runDaemonSet, said, specOf } from '../node/daemon-set.ts'
import { BINARY, INSTALLED, install, ROOT } from '../node/drivers.ts'
import type { StandaloneNode } from '../node/node.ts'
import type { Pod } from '../node/pod.ts'
import { until } from '../node/until.ts'
import type { Case } from './case.ts'
import { healed, podWithConfig, startAgain, write } from './flipped.ts'
import { daemonsOf } from './fuse.ts'
import { FSGROUP, look, makeFiles, modes, SIX, SIX_MODES } from './tree.ts'

const CONFIG = '/etc/modekeep/config.json'

/** One after the other on one node, as its life goes. */
const life: Case<StandaloneNode> = {
  name: 'a new node gets the driver by the DaemonSet, which heals, upgrades, refuses a bad configuration, and uninstalls',
  when: 'alone',
  async run({ node }) {
    execFileSync(`${ROOT}/install.sh`, ['--uninstall'])
    fs.rmSync(CONFIG)
    try {
      const config = JSON.stringify({
        allow: [{ sources: [`${node.volumes}/*`], fsTypes: ['bind', 'fuse.bindfs'] }],
      })
      const source = makeFiles(`${node.volumes}/new-node`, SIX)
      const options = { source, ownership: 'walk' }
      const early = await node.give({ name: 'new-node', driver: 'modekeep', options, fsGroup: FSGROUP })
      await until('kubelet finds no driver', () => node.kubelet.log().includes('no volume plugin matched'))
      assert(!(await early.isRunning()))

      giveImage(node, BINARY, '1')
      const other = await refusesOtherOverlay(node, config)
      const first = await runDaemonSet(node, 'modekeep-1', { config, image: { newTag: '1' } }).running()
      await early.running()
      assert.match(said(first, 'install'), /as it is the directory of kubelet, pid \d+/)
      assert.equal(fs.readFileSync(CONFIG, 'utf8'), config)
      assert.deepEqual(modes(look(source)), SIX_MODES)
      assert.equal(look(source).get('test1')?.group, FSGROUP)
      confined(first)
      assert.match((await first.exec('touch /file')).text, /Read-only file system/)
      assert.match((await first.exec('modekeep status')).text, /new-node/)
      const repaired = await repairs(node)

      await upgraded(node, first, early, config)
      const served = await hasFuse(node, config)
      const refusal = await refusesFaults(node, config)
      await uninstalled(node, early)
      return {
        modekeep: `pod ran when the driver came; heal: ${repaired}, ${served}; ${other}, ${refusal}; gone after its last pod`,
      }
    } finally {
      node.allow([node.volumes])
      install()
    }
  },
}

/** What the manifest drops is dropped. */
function confined(pod: Pod): void {
  for (const [name, capabilities] of [
    ['install', []],
    ['modekeep', HEAL],
  ] as const) {
    const { process: of, root, linux } = specOf(pod, name)
    assert.deepEqual((of.capabilities?.bounding ?? []).toSorted(), [...capabilities].sort(), name)
    assert.deepEqual((of.capabilities?.effective ?? []).toSorted(), [...capabilities].sort(), name)
    assert.deepEqual([root.readonly, linux.seccomp !== undefined], [true, true], name)
  }
  assert.equal(specOf(pod, 'install').process.noNewPrivileges, true)
}

const HEAL = [
  'CHOWN',
  'DAC_READ_SEARCH',
  'FOWNER',
  'FSETID',
  'SETFCAP',
  'SETGID',
  'SETUID',
  'SYS_ADMIN',
  'SYS_CHROOT',
  'SYS_PTRACE',
].map((name) => `CAP_${name}`)

async function repairs(node: StandaloneNode): Promise<string> {
  const { pod, source } = await podWithConfig(node, 'flipped-in-cluster')
  write(source, 2)
  await healed(pod)
  const seen = await startAgain(pod)
  await node.remove(pod)
  assert.equal(seen, 'version 2')
  return `the next container sees ${seen}`
}

async function upgraded(node: StandaloneNode, before: Pod, stays: Pod, config: string): Promise<void> {
  // The same program with other bytes: an ELF file may have something after its end.
  const newer = `${node.elsewhere}/modekeep-newer`
  fs.copyFileSync(BINARY, newer)
  fs.appendFileSync(newer, Buffer.alloc(4096))
  giveImage(node, newer, '2')
  const [mount] = stays.layers()
  await node.remove(before)
  assert(fs.existsSync(INSTALLED), 'the driver went with its pod')
  const pod = await runDaemonSet(node, 'modekeep-2', { config, image: { newTag: '2' } }).running()
  assert.equal(fs.statSync(INSTALLED).size, fs.statSync(newer).size)
  assert.match(said(pod, 'install'), /upgraded/)
  assert.equal(stays.layers().at(-1)?.id, mount?.id, 'the mount of the pod that ran is another one')
  assert.equal((await stays.exec('cat /data/test1')).text, 'test1')
  await until("heal is the new program's", async () => {
    const parent = await pod.process()
    const [child] = fs.readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').split(' ')
    return fs.readlinkSync(`/proc/${child}/exe`) === INSTALLED
  })
  await node.remove(pod)
}

/** With the components for it: the device plugin, and a heal that may open /dev/fuse to replace a dead daemon. */
async function hasFuse(node: StandaloneNode, config: string): Promise<string> {
  const wishes = { config, components: ['components/heal-devices', 'device-plugin'], image: { newTag: '2' } }
  const pod = await runDaemonSet(node, 'modekeep-fuse', wishes).running()
  await until('the device plugin is registered', () => said(pod, 'device-plugin').includes('"event":"registered"'))
  const source = makeFiles(`${node.volumes}/served-in-cluster`, { file: 0o644 })
  const served = await node.run({
    name: 'served-in-cluster',
    driver: 'modekeep',
    fsType: 'fuse.bindfs',
    options: { source },
  })
  const [daemon] = daemonsOf(served.uid)
  process.kill(Number(daemon), 'SIGKILL')
  const file = `${served.mountPoint}/file`
  await until(
    'another daemon serves',
    () => daemonsOf(served.uid)[0] !== daemon && fs.readFileSync(file, 'utf8') === 'file\n',
  )
  await node.remove(served)
  await node.remove(pod)
  return 'a dead FUSE daemon is replaced'
}

/** With the overlay of another distribution kubelet would never find the driver, and pods would wait without a word. */
async function refusesOtherOverlay(node: StandaloneNode, config: string): Promise<string> {
  const pod = runDaemonSet(node, 'modekeep-other', { config, image: { newTag: '1' } }, 'default')
  await until('the directory is refused', () => said(pod, 'install').includes('looks for drivers in'))
  assert.match(said(pod, 'install'), /on a cluster: the overlay flatcar or rke2/)
  assert(!(await pod.isRunning()))
  assert(!fs.existsSync(CONFIG))
  await node.remove(pod)
  return 'another overlay refused'
}

/** The pod of a configuration with a fault does not come up, so a rollout stops; what was in force stays so. */
async function refusesFaults(node: StandaloneNode, config: string): Promise<string> {
  const bad = '{ "alow": [] }'
  const pod = runDaemonSet(node, 'modekeep-bad', { config: bad, image: { newTag: '2' } })
  await until('the configuration is refused', () => said(pod, 'install').includes('is refused'))
  assert.match(said(pod, 'install'), /alow/)
  assert(!(await pod.isRunning()))
  assert.equal(fs.readFileSync(CONFIG, 'utf8'), config)
  await node.remove(pod)
  return 'bad configuration refused'
}

async function uninstalled(node: StandaloneNode, stays: Pod): Promise<void> {
  const wishes = { components: ['components/uninstall'], image: { newTag: '2' } }
  const pod = runDaemonSet(node, 'modekeep-uninstall', wishes)
  await until('it waits for the last pod', () => said(pod, 'uninstall').includes('volumes of modekeep/fs are mounted'))
  assert(fs.existsSync(INSTALLED))
  assert.equal((await stays.exec('cat /data/test1')).text, 'test1')
  await node.remove(stays)
  await pod.running()
  assert(!fs.existsSync(INSTALLED))
  assert.deepEqual(specOf(pod, 'modekeep').process.capabilities?.bounding ?? [], [])
  await node.remove(pod)
}

export const CLUSTER = [life]
