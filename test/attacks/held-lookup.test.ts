import { execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { CsiNode } from '../frontends/csi/node.ts'
import { cannotServe, FuseNode, until } from '../helpers/fuse-node.ts'
import { compileHolder, finishWithin, lockDirectory, lockDirectoryWithWriter } from '../helpers/held-directory.ts'
import { BINARY } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'

const skipReason = cannotServe('cc')
const SUCCESS = { status: 'Success' }
/** Seconds, of helperTimeoutSeconds. */
const PATIENCE = 8
/** Seconds, on a busy machine too; a call that waits for the directory takes until that is released. */
const IN_TIME = PATIENCE + 17
const WALK = { ownership: 'walk', fsGroupChangePolicy: 'Always', 'kubernetes.io/fsGroup': '2000' }
const UNKNOWN =
  /^health unknown: the lookup of its source does not end \(a process keeps a directory of the path locked/

interface Report {
  mounts: { directory: string; state: string; action: string; reason: string }[]
  volumes: { source: string }[]
  subPaths: { mountPoint: string; action: string; reason: string }[]
  findings: { level: string; text: string }[]
  items: { kind: string; name: string; action: string; reason: string }[]
}

describe.skipIf(skipReason !== '')(
  addSkipReason('a directory below the root of a volume that a process keeps locked', skipReason),
  () => {
    let node: FuseNode
    let holder: string
    let data: string
    let other: string
    beforeEach((context) => {
      holder = compileHolder(context)
      node = new FuseNode([])
      node.configure({ helperTimeoutSeconds: PATIENCE })
      data = makeVolume('data')
      other = makeVolume('other')
    })

    function makeVolume(name: string): string {
      const path = `${node.volumes}/${name}`
      fs.mkdirSync(`${path}/a/b`, { recursive: true })
      for (const file of ['file', 'a/file', 'a/b/file']) fs.writeFileSync(`${path}/${file}`, '')
      return path
    }

    /** As a verb that a person gives, but the test goes on meanwhile. */
    const run = async (...args: string[]): Promise<Report> => JSON.parse(await print(...args, '--json'))

    async function print(...args: string[]): Promise<string> {
      const child = spawn(BINARY, args, {
        env: { PATH: process.env.PATH, MODEKEEP_CONFIG: node.config },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let text = ''
      child.stdout.on('data', (bytes) => {
        text += bytes
      })
      await new Promise((done) => child.once('close', done))
      return text
    }

    const mountOf = (report: Report, pod: string) =>
      report.mounts.find(({ directory }) => directory === node.podDirectory(pod))

    /** A user of the volume exchanges a directory of the mounted subPath, whose entries the kernel has not looked up then. */
    function exchange(directory = `${data}/a`): void {
      fs.renameSync(directory, `${directory}.old`)
      fs.mkdirSync(directory)
    }

    it('heal, status and doctor report the health of its mount as unknown, and all other mounts as usual', async () => {
      expect(await node.mount('a', { source: data, subPath: 'a/b' })).toEqual(SUCCESS)
      expect(await node.mount('b', { source: other })).toEqual(SUCCESS)
      exchange()
      const release = await lockDirectoryWithWriter(holder, `${data}/a`)
      for (const verb of ['status', 'heal']) {
        const report = await finishWithin(IN_TIME, () => run(verb))
        expect(mountOf(report, 'a')).toMatchObject({ state: 'unknown', reason: expect.stringMatching(UNKNOWN) })
        expect(mountOf(report, 'b')).toMatchObject({ state: 'healthy' })
      }
      await finishWithin(IN_TIME, () => run('doctor'))
      // Without a verb: what is mounted, in a line.
      expect(await finishWithin(IN_TIME, () => print())).toContain('2 on this node')
      await finishWithin(IN_TIME, () => run('gc'))
      await release()
      expect(mountOf(await run('heal'), 'a')).toMatchObject({ state: 'stale', action: 'failed' })
    })

    it('doctor warns of a rule whose directory it cannot look up, also by a link, and checks the other rules', async () => {
      fs.symlinkSync(`${data}/a/b`, `${node.volumes}/link`)
      const sources = [`${data}/a/b/*`, `${node.volumes}/link/*`, `${data}/*`, `${other}/*`]
      node.configure({ allow: [{ sources, fsTypes: ['bind'] }] })
      exchange()
      const release = await lockDirectoryWithWriter(holder, `${data}/a`)
      const { findings } = await finishWithin(IN_TIME, () => run('doctor'))
      for (const path of [`${data}/a/b`, `${node.volumes}/link`]) {
        expect(findings).toContainEqual(
          expect.objectContaining({ level: 'warning', text: expect.stringContaining(`${path} does not respond`) }),
        )
      }
      for (const path of [data, other]) {
        expect(findings).toContainEqual(
          expect.objectContaining({ level: 'ok', text: expect.stringContaining(`${path} `) }),
        )
      }
      await release()
      expect(JSON.stringify((await run('doctor')).findings)).not.toContain('does not respond')
    })

    it('does not keep heal --watch from repairing the mounts of other volumes', async () => {
      expect(await node.mount('a', { source: data, subPath: 'a/b' })).toEqual(SUCCESS)
      expect(await node.mount('b', { source: other })).toEqual(SUCCESS)
      exchange()
      await lockDirectoryWithWriter(holder, `${data}/a`)
      const child = spawn(BINARY, ['heal', '--watch', '--json'], {
        env: { PATH: process.env.PATH, MODEKEEP_CONFIG: node.config },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      await new Promise((done) => setTimeout(done, 3000))
      for (let round = 0; round < 2; round++) {
        execFileSync('umount', [node.podDirectory('b')])
        await finishWithin(IN_TIME, () => until(() => node.layers('b').length === 1))
      }
      expect(lookups()).toBeLessThanOrEqual(2)
    })

    /** Processes that look up a path of this test and have not ended. */
    function lookups(): number {
      const found = fs.readdirSync('/proc').filter((pid) => {
        try {
          return /^\d+$/.test(pid) && fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(data.slice(1))
        } catch {
          return false
        }
      })
      const isHolder = (pid: string) => /held-directory|mkdir/.test(fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      return found.filter((pid) => !isHolder(pid)).length
    }

    it('gc keeps what is recorded of it with the reason, and prunes the journals of other volumes', async () => {
      for (const [pod, source] of [
        ['a', data],
        ['b', other],
      ] as const) {
        expect(await node.mount(pod, { ...WALK, source })).toEqual(SUCCESS)
        expect(await node.unmount(pod)).toEqual(SUCCESS)
        // What a user changed since stays recorded after a restore, until gc prunes it.
        fs.chownSync(`${source}/a/file`, 0, 3000)
        expect(node.byHand<{ outcome: string }>('restore', source).outcome).toBe('partly restored')
        fs.rmSync(`${source}/a/file`)
      }
      const release = await lockDirectoryWithWriter(holder, `${data}/a`)
      const { items } = await finishWithin(IN_TIME, () => run('gc'))
      expect(items).toEqual(
        [
          expect.objectContaining({
            kind: 'volume',
            action: 'kept',
            reason: expect.stringContaining('stays recorded: the walk of'),
          }),
          expect.objectContaining({ kind: 'volume', action: 'removed' }),
        ].sort(),
      )
      await release()
      expect((await run('gc')).items).toMatchObject([{ kind: 'volume', action: 'removed' }])
      expect(fs.existsSync(`${node.state}/ownership`)).toBe(false)
    })

    it('the set-gid bit of its root does not delay the unmounts of other volumes, and gc restores it later', async () => {
      const rule = { sources: [`${node.volumes}/*`], fsTypes: ['bind'], setGid: 'root', systemGroups: true }
      node.configure({ allow: [rule] })
      const mapped = { ownership: 'idmap', 'kubernetes.io/fsGroup': '2000', setGid: 'root' }
      for (const [pod, source] of [
        ['a', data],
        ['b', other],
        ['c', makeVolume('third')],
      ] as const) {
        expect(await node.mount(pod, { ...mapped, source })).toEqual(SUCCESS)
        expect(hasBit(source)).toBe(true)
      }
      const release = await lockDirectory(holder, data)
      expect(await finishWithin(IN_TIME, () => node.unmount('a'))).toEqual(SUCCESS)
      for (const pod of ['b', 'c']) expect(await finishWithin(PATIENCE + 4, () => node.unmount(pod))).toEqual(SUCCESS)
      expect([data, other, `${node.volumes}/third`].map(hasBit)).toEqual([true, false, false])
      await finishWithin(IN_TIME, () => run('gc'))
      await release()
      await run('gc')
      expect(hasBit(data)).toBe(false)
    })

    const hasBit = (path: string) => (fs.statSync(path).mode & 0o2000) !== 0

    it("heal does not repair kubelet's binds of its parts, and repairs those of other volumes", async () => {
      const binds = new Map<string, string>()
      for (const [pod, source] of [
        ['a', data],
        ['b', other],
      ] as const) {
        expect(await node.mount(pod, { source })).toEqual(SUCCESS)
        const bind = `${node.top}/pods/${pod}/volume-subpaths/v/main/0`
        fs.mkdirSync(bind, { recursive: true })
        execFileSync('mount', ['--bind', `${node.podDirectory(pod)}/a/b`, bind])
        binds.set(pod, bind)
        fs.rmSync(`${source}/a`, { recursive: true })
        fs.mkdirSync(`${source}/a`)
      }
      fs.mkdirSync(`${other}/a/b`)
      await lockDirectoryWithWriter(holder, `${data}/a`)
      const { subPaths } = await finishWithin(IN_TIME, () => run('heal'))
      expect(subPaths).toContainEqual(
        expect.objectContaining({
          mountPoint: binds.get('a'),
          action: 'none',
          reason: expect.stringMatching(/^the lookup in .* was given up: process \d+ had reported nothing for 5 s/),
        }),
      )
      expect(subPaths).toContainEqual(expect.objectContaining({ mountPoint: binds.get('b'), action: 'replaced' }))
    })
  },
)

describe.skipIf(skipReason !== '')(
  addSkipReason('a subPath of a CSI volume that a process keeps locked', skipReason),
  () => {
    it('has an unknown volume condition, one process waits for the subPath, and CSI statistics of other volumes are returned', async (context) => {
      const holder = compileHolder(context)
      const node = new CsiNode()
      onTestFinished(() => node.end())
      node.configure({ helperTimeoutSeconds: PATIENCE })
      await node.serve()
      const [data, other] = [node.volume('data', 1), node.volume('other', 1)]
      fs.mkdirSync(`${data}/a/b`, { recursive: true })
      expect(await node.publish(1, data, { attributes: { subPath: 'a/b' } })).toMatchObject({ code: 'OK' })
      expect(await node.publish(2, other)).toMatchObject({ code: 'OK' })
      fs.renameSync(`${data}/a`, `${data}/a.old`)
      fs.mkdirSync(`${data}/a`)
      const release = await lockDirectoryWithWriter(holder, `${data}/a`)
      const told: string[] = []
      for (let round = 0; round < 4; round++) {
        const answer = await finishWithin(IN_TIME, () => node.stats(1))
        told.push(JSON.stringify(answer))
        expect(await finishWithin(PATIENCE, () => node.stats(2))).toMatchObject({ code: 'OK' })
      }
      for (const one of told) expect(one).toMatch(/unknown: process \d+, which worked on the volume, was given up/)
      expect(node.workers().length).toBeLessThanOrEqual(3)
      await release()
      expect(dirname(node.target(1))).toContain('kubernetes.io~csi')
      expect(await node.unpublish(1)).toMatchObject({ code: 'OK' })
    })
  },
)
