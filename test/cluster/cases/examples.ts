import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { type Facts, look } from '../../kubelet/cases/tree.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import { mustBeUntouched, mustHaveNoClones } from '../../runtimes/cases/seen.ts'
import { fill, ON_DISK } from '../../runtimes/node/disks.ts'
import { withForeignDriver } from '../foreign/driver.ts'
import type { Cluster } from '../plane/cluster.ts'
import { readExample } from '../plane/examples.ts'
import { statusOfNode } from '../plane/mounts.ts'
import { exec, gone, running, volumeAndClaim } from '../plane/pods.ts'
import { keepsNoContainers, lacksPlugins, mustBeShown } from './any-volume.ts'
import type { Case } from './case.ts'

const FILES = ['postgresql', 'statefulset-from-fsgroup', 'git-sync', 'any-volume-two-teams', 'smb']

/** Publishes a commit as git-sync does: a directory, and a link to it that is replaced. */
const publish = (commit: number) =>
  `mkdir -p /git/site/.worktrees/${commit} && cd /git/site && echo ${commit} >.worktrees/${commit}/index.html && ln -sfn .worktrees/${commit} html`

/** Scripts in place of the programs of images that the test does not have. */
const STAND_INS = {
  'postgres:17': 'mkdir -p -m 700 $PGDATA; test -e $PGDATA/PG_VERSION || echo 17 >$PGDATA/PG_VERSION',
  'registry.k8s.io/git-sync/git-sync:v4.2.4': publish(1),
  'nginxinc/nginx-unprivileged:1.27': 'true',
}

/** A mount.cifs that mounts a tmpfs with the group of its options, and writes its options and credentials to a file. */
const createFakeMountCifs = (record: string) => `#!/bin/sh -e
options=,$4,
group=\${options#*,gid=}
credentials=\${options#*,credentials=}
{ printf '%s\\n' "$1" "$4" && cat "\${credentials%%,*}"; } >${record}
mount -t tmpfs -o "mode=0770,gid=\${group%%,*}" share "$2"
`

const GROUP = 2000
/** Claims in place of a StorageClass. One has files as a walk for an fsGroup left them, the others are fresh. */
const WALKED = 'data-queue-0'
const CLAIMS = [WALKED, 'data-queue-1', 'data-postgresql-0', 'repository']

function fillAsWalked(directory: string): void {
  fill(directory)
  execFileSync('chgrp', ['-R', String(GROUP), directory])
}

function readOwner(path: string): [uid: number, gid: number, mode: string] {
  const { uid, gid, mode } = fs.lstatSync(path)
  return [uid, gid, (mode & 0o777).toString(8)]
}

/** Facts of the files below a volume, without those of `names`. */
const lookBelow = (volume: string, ...names: string[]) =>
  [...look(volume)].filter(([name]) => !['.', ...names].includes(name))

const examples: Case = {
  name: 'examples: PostgreSQL, a StatefulSet that had an fsGroup, git-sync, two teams and an SMB share (a tmpfs in place of a server) write with their user and group, and volumes with files do not change',
  lacks: lacksPlugins,
  run: (cluster) =>
    withForeignDriver(cluster, async (driver) => {
      const shared = `${cluster.volumes}/shared`
      fs.mkdirSync(shared)
      fill(shared)
      let walked: [string, Facts][] = []
      const fillWalked = (directory: string) => {
        fillAsWalked(directory)
        walked = lookBelow(directory)
      }
      const bound = CLAIMS.flatMap((name) =>
        volumeAndClaim(name, driver.volume(name, name === WALKED ? fillWalked : () => {})),
      )
      const hasName = ({ kind, metadata }: Resource) => `${kind} ${metadata.namespace ?? 'default'} ${metadata.name}`
      const replaced = new Set(bound.map(hasName))
      const resources = FILES.flatMap((file) => readExample(cluster, file, STAND_INS)).filter(
        (resource) => !replaced.has(hasName(resource)),
      )
      const mountCalls = `${cluster.elsewhere}/mount.cifs-calls`
      using _ = replaceMountCifs(cluster, createFakeMountCifs(mountCalls))
      await applyPodsAfterClaims(cluster, [...bound, ...resources])
      const controllers = resources.filter(({ spec }) => spec?.template)
      for (const { kind, metadata } of controllers) {
        const { name, namespace = 'default' } = metadata
        await cluster.kubectl('rollout', 'status', `${kind}/${name}`, '-n', namespace, '--timeout=90s')
      }
      const findVolume = (claim: string) => driver.staged.get(claim) ?? ''
      await assertPostgresqlKeepsItsFiles(
        cluster,
        () => findVolume('data-postgresql-0'),
        async () => {
          for (const replica of [0, 1]) {
            await exec(cluster, `queue-${replica}`, 'echo new >/data/new')
            const volume = findVolume(`data-queue-${replica}`)
            assert.deepEqual(readOwner(`${volume}/new`), [1000, GROUP, '644'], `queue-${replica}`)
          }
          assert.deepEqual(lookBelow(findVolume(WALKED), 'new'), walked)
          await assertSiteFollowsItsLink(cluster, findVolume('repository'))
          await assertTeamsShare(cluster, shared)
          await assertShareIsMounted(cluster, mountCalls)
        },
      )
      await mustHaveNoClones()
      const { containers } = await statusOfNode()
      assert.deepEqual([...new Set(containers.map(({ state }) => state))], ['mapped'])
      const uids = await listPodIds(cluster)
      await cluster.withdraw(...resources, ...bound)
      for (const uid of uids) await gone(uid)
      await keepsNoContainers()
      return `${controllers.map(({ metadata }) => metadata.name).join(', ')} and team-share ran`
    }),
}

/** Replaces the node's program in this run's mount namespace. */
function replaceMountCifs({ elsewhere }: Cluster, script: string): Disposable {
  const installed = ['/usr/sbin/mount.cifs', '/sbin/mount.cifs'].find((path) => fs.existsSync(path))
  if (installed === undefined) throw new Error('there is no mount.cifs: install cifs-utils')
  const program = fs.realpathSync(installed)
  fs.writeFileSync(`${elsewhere}/mount.cifs`, script, { mode: 0o755 })
  execFileSync('mount', ['--bind', `${elsewhere}/mount.cifs`, program])
  return { [Symbol.dispose]: () => void execFileSync('umount', [program]) }
}

/** Applies pods when their claims are bound, because the scheduler retries a pod that comes before only after a while. */
async function applyPodsAfterClaims(cluster: Cluster, resources: readonly Resource[]): Promise<void> {
  const pods = resources.filter(({ kind, spec }) => kind === 'Pod' || spec?.template)
  await cluster.apply(...resources.filter((resource) => !pods.includes(resource)))
  for (const { kind, metadata } of resources) {
    if (kind !== 'PersistentVolumeClaim') continue
    const { name, namespace } = metadata
    const isBound = async () => (await cluster.get(`pvc/${name}`, namespace))?.status?.phase === 'Bound'
    await until(`the claim ${name} is bound`, isBound)
  }
  await cluster.apply(...pods)
}

/** @param meanwhile runs while the pod is replaced */
async function assertPostgresqlKeepsItsFiles(
  cluster: Cluster,
  findVolume: () => string,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const show = () => exec(cluster, 'postgresql-0', 'id -u; stat -c "%u %g" $PGDATA; cat $PGDATA/PG_VERSION')
  assert.equal(await show(), '999\n999 999\n17')
  const before = look(findVolume())
  const owners = [findVolume(), `${findVolume()}/pgdata`].map(readOwner)
  assert.deepEqual(owners, [
    [0, 999, '775'],
    [999, 999, '700'],
  ])
  const old = await cluster.get('pod/postgresql-0')
  await cluster.kubectl('delete', 'pod', 'postgresql-0', '--wait=false')
  await meanwhile()
  await until('the pod is replaced', async () => {
    const uid = (await cluster.get('pod/postgresql-0'))?.metadata.uid
    return uid !== undefined && uid !== old?.metadata.uid
  })
  await running(cluster, 'postgresql-0')
  assert.equal(await show(), '999\n999 999\n17')
  assert.deepEqual(look(findVolume()), before)
}

async function assertSiteFollowsItsLink(cluster: Cluster, volume: string): Promise<void> {
  const run = (container: string, script: string) =>
    cluster.kubectl('exec', 'deployment/site', '-c', container, '--', '/bin/sh', '-ec', script)
  const readPage = () => run('nginx', 'cat /usr/share/nginx/html/index.html')
  assert.equal(await readPage(), '1\n')
  await run('git-sync', `${publish(2)} && rm -r .worktrees/1`)
  assert.equal(await readPage(), '2\n')
  const names = [...look(volume).keys()].filter((name) => name.startsWith('site'))
  assert(names.includes('site/.worktrees/2/index.html'))
  for (const name of names) assert.deepEqual(readOwner(`${volume}/${name}`).slice(0, 2), [65533, GROUP], name)
}

async function assertTeamsShare(cluster: Cluster, volume: string): Promise<void> {
  const teams = [
    { namespace: 'team-a', name: 'importer', group: 2000 },
    { namespace: 'team-b', name: 'reports', group: 3000 },
  ]
  for (const { namespace, name, group } of teams) {
    const label = `app.kubernetes.io/name=${name}`
    const pods = await cluster.kubectl('get', 'pods', '-n', namespace, '-l', label, '-o', 'name')
    const pod = pods.trim().replace('pod/', '')
    await mustBeShown(cluster, pod, '/shared', group, namespace)
    assert.deepEqual(readOwner(`${volume}/sub/of-${pod}`), [1000, ON_DISK, '644'])
  }
  mustBeUntouched(volume)
}

async function assertShareIsMounted(cluster: Cluster, mountCalls: string): Promise<void> {
  await running(cluster, 'team-share')
  const shown = await exec(cluster, 'team-share', 'echo new >/share/new; stat -c "%u %g %a" /share /share/new')
  assert.equal(shown, `0 ${GROUP} 770\n1000 1000 644`)
  const [source, options, ...credentials] = fs.readFileSync(mountCalls, 'utf8').trim().split('\n')
  assert.equal(source, '//files.example.com/team')
  assert.match(options ?? '', /^vers=3\.1\.1,seal,gid=2000,forcegid,file_mode=0660,dir_mode=0770,nosuid,nodev,/)
  assert.deepEqual(credentials, ['username=bob', 'password=replace-me'])
}

/** Lists the ids of all pods except modekeep's own. */
async function listPodIds({ kubectl }: Cluster): Promise<string[]> {
  const selector = 'metadata.namespace!=kube-system'
  const { items } = JSON.parse(await kubectl('get', 'pods', '-A', '--field-selector', selector, '-o', 'json'))
  return items.map(({ metadata }: Resource) => metadata.uid)
}

export const EXAMPLES = [examples]
