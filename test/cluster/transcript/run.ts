import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { join } from 'node:path'
import type { Architecture } from '../../../scripts/build/runtime.ts'
import { provideClients } from '../../../scripts/fetch/clients.ts'
import { runCommand as runProgram } from '../../../scripts/fetch/command.ts'
import { createDockerArchive } from '../../../scripts/image/archive.ts'
import { createShellRoot } from '../../../scripts/image/shell.ts'
import { printTally } from '../../helpers/tally.ts'
import { makeOwnPlace } from '../../kubelet/confine/own-place.ts'
import { importImages } from '../../kubelet/node/containerd.ts'
import { type ForeignDriver, withForeignDriver } from '../foreign/driver.ts'
import { type Cluster, startCluster } from '../plane/cluster.ts'
import { bind, volumeAndClaim } from '../plane/pods.ts'
import type { World } from '../world.ts'
import { CLAIMS, FILES, SHOP } from './any-volume-steps.ts'
import type { TranscriptOptions } from './main.ts'
import { PARTS, type Step } from './steps.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** How long a command may take, in milliseconds. */
const PATIENCE = 90_000

/** What tells why. */
const LOOK = `kubectl describe pods -A | tail -n 60
kubectl -n kube-system logs daemonset/modekeep --all-containers --tail 20`

type Told = Omit<World, 'options'> & { options: TranscriptOptions }

/** Plays the steps on a fresh cluster and writes what an administrator sees. Returns whether one failed. */
export async function run(world: Told): Promise<boolean> {
  const { place, programs, cgroups } = world
  makeOwnPlace(place, cgroups, programs.runtime.busybox)
  // Sources of volumes lie there in the pages; it is this machine's.
  runProgram('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'tmpfs', '/srv'])
  // By its name modekeep knows a kubelet; one that is built has its version in it.
  const kubelet = `${place}/kubelet`
  fs.symlinkSync(programs.kubernetes.kubelet, kubelet)
  const cluster = await startCluster({
    ...world,
    programs: { ...programs, kubernetes: { ...programs.kubernetes, kubelet } },
  })
  return await withForeignDriver(
    cluster,
    async (driver) => {
      await makeLargeClaims(cluster, driver)
      return await play(world)
    },
    'File',
  )
}

/** Claims of another driver in a namespace of their own. */
async function makeLargeClaims(cluster: Cluster, driver: ForeignDriver): Promise<void> {
  await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: SHOP } })
  for (const name of CLAIMS) {
    const [volume, claim] = volumeAndClaim(name, driver.largeVolume(name, FILES), SHOP)
    await bind(cluster, name, [volume, claim], SHOP)
  }
}

async function play(world: Told): Promise<boolean> {
  const { options } = world
  const administrator = new Administrator(world)
  const failures: string[] = []
  const transcript: string[] = []
  const tell = (text: string) => {
    process.stdout.write(text)
    transcript.push(text)
  }
  for (const { title, notes = [], steps } of PARTS) {
    tell(`\n# --- ${title} ---\n`)
    for (const note of notes) tell(`#   ${note}\n`)
    for (const step of steps) {
      const command = administrator.spelled(step.command)
      tell(`${step.at === 'cluster' ? 'cluster' : (step.at ?? 'release')}# ${command}\n`)
      const { text, fault } = await administrator.does(step)
      tell(text)
      if (fault === undefined) continue
      failures.push(`test:transcript: ${command}`)
      tell(`*** ${fault}\n`)
      process.stdout.write((await administrator.does({ command: LOOK })).text)
      break
    }
    if (failures.length > 0) break
  }
  fs.mkdirSync(join(options.output, '..'), { recursive: true })
  fs.writeFileSync(options.output, transcript.join('').trimStart())
  const played = PARTS.flatMap(({ steps }) => steps).length
  printTally({ passed: played - failures.length, failed: failures.length, skipped: 0, failures })
  return failures.length > 0
}

class Administrator {
  readonly #directory: string
  readonly #environment: NodeJS.ProcessEnv
  readonly #version: string

  constructor({ place, programs, options }: Told) {
    this.#version = JSON.parse(fs.readFileSync(join(ROOT, 'package.json'), 'utf8')).version
    this.#directory = `${place}/administrator`
    const bin = `${place}/bin`
    for (const directory of [this.#directory, bin]) fs.mkdirSync(directory, { recursive: true })
    const other = process.arch === 'x64' ? 'arm64' : 'amd64'
    for (const name of fs.readdirSync(options.release).filter((name) => !name.includes(other))) {
      fs.copyFileSync(join(options.release, name), join(this.#directory, name))
    }
    // The programs that he has, and the image of the example, which his cluster would get from a registry.
    const clients = provideClients()
    for (const name of ['kubectl', 'helm'] as const) fs.symlinkSync(clients[name], `${bin}/${name}`)
    const name = 'docker.io/library/busybox:1.36'
    const shell = { name, command: ['/bin/sh'], labels: { name } }
    const archive = `${place}/example.tar`
    fs.writeFileSync(
      archive,
      createDockerArchive([shell], createShellRoot(programs.runtime.busybox), process.arch as Architecture),
    )
    importImages(archive)
    this.#environment = {
      PATH: `${bin}:/usr/local/bin:${process.env.PATH}`,
      HOME: this.#directory,
      KUBECONFIG: `${place}/pki/admin.kubeconfig`,
      LC_ALL: 'C',
    }
  }

  spelled(command: string): string {
    const arch = process.arch === 'x64' ? 'amd64' : 'arm64'
    return command.replaceAll('VERSION', this.#version).replaceAll('linux-amd64', `linux-${arch}`)
  }

  /** @returns what he sees, and what is wrong with it */
  async does({ command, page, at, shows }: Step): Promise<{ text: string; fault?: string }> {
    if (page !== undefined && !isSaid(page, command)) return { text: '', fault: `${page} does not say so` }
    const cwd = {
      release: this.#directory,
      cluster: `${this.#directory}/cluster`,
      modekeep: `${this.#directory}/modekeep`,
    }
    const child = spawn('/bin/sh', ['-c', `exec 2>&1\n${this.spelled(command)}`], {
      cwd: cwd[at ?? 'release'],
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: PATIENCE,
    })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    const [status, signal] = await once(child, 'close')
    if (status !== 0) return { text, fault: `it ended with ${status ?? signal}` }
    if (shows !== undefined && !shows.test(text)) return { text, fault: `it does not show ${shows}` }
    return { text }
  }
}

/** Whether the page has the command, on a line of its own or in the running text. */
function isSaid(page: string, command: string): boolean {
  return fs.readFileSync(join(ROOT, page), 'utf8').replaceAll(/\s+/g, ' ').includes(command)
}
