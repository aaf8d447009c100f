import { execFile, execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { provideClients } from '../../../scripts/fetch/clients.ts'
import { runCommand } from '../../../scripts/fetch/command.ts'
import { readRuntimeVersions } from '../../../scripts/fetch/packages.ts'
import { layOver } from '../../kubelet/confine/own-place.ts'
import { NRI, startContainerd } from '../../kubelet/node/containerd.ts'
import { Daemon } from '../../kubelet/node/daemon.ts'
import { PLUGINS } from '../../kubelet/node/kubelet.ts'
import { makeNetwork } from '../../kubelet/node/network.ts'
import { until } from '../../kubelet/node/until.ts'
import type { Resource } from '../../kubernetes/render.ts'
import type { World } from '../world.ts'
import { ADDRESS, makeCertificates, NODE } from './certificates.ts'
import { commands, kubeletsFile } from './commands.ts'
import { isAtLeast } from './version.ts'

/** Where the plugin of kubectl lies. */
const PLUGIN = join(import.meta.dirname, '../../../driver/kubernetes')

type Name = keyof ReturnType<typeof commands> | 'containerd'

/** A cluster of one node. */
export interface Cluster {
  /** Like `v1.20.2`. */
  version: string
  /** Sources of volumes are made here; the node's configuration allows them. */
  volumes: string
  /** For what is to lie outside of it. */
  elsewhere: string
  /** A static one. */
  busybox: string
  daemons: Record<Name, Daemon>
  /** Of containerd and runc, like `2.1.4`. */
  runtime: { containerd: string; runc: string }
  /** Whether that asks plugins before it creates a container. */
  asksPlugins: boolean
  /** Whether the kubelet is of this version or newer, like `1.22`. */
  atLeast(version: string): boolean
  /** kubectl as the administrator. Rejects with its last words. */
  kubectl(...args: string[]): Promise<string>
  /** `kubectl modekeep`, the plugin of driver/kubernetes, as the administrator. */
  plugin(...args: string[]): Promise<{ exit: number; stdout: string; stderr: string }>
  /** helm as the administrator. Rejects with its stderr. */
  helm(...args: string[]): Promise<string>
  apply(...resources: readonly Resource[]): Promise<void>
  /** `kubectl apply -k`, by a kubectl that knows components: that of 1.20 does not. */
  applyKustomization(directory: string): Promise<void>
  /** The resource as the API server would store it. Rejects with its refusal. */
  admit(resource: Resource): Promise<Resource>
  /** What the API server says against some, and makes none; undefined if it would take all. */
  refusal(...resources: readonly Resource[]): Promise<string | undefined>
  /** Deletes them; what is theirs may go a while later. */
  withdraw(...resources: readonly Resource[]): Promise<void>
  /** A resource, like `pod/name`; undefined if there is none. */
  get(what: string, namespace?: string): Promise<Resource | undefined>
  /** Ends a program and starts it again; waits until the cluster answers. */
  restart(name: Name, signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

/** Starts all of it in this process's namespaces, which makeOwnPlace has made; returns when the node is ready. */
export async function startCluster({ place, programs }: Omit<World, 'options'>): Promise<Cluster> {
  const logs = `${place}/logs`
  const [volumes, elsewhere] = [`${place}/volumes`, `${place}/elsewhere`]
  for (const directory of [logs, volumes, elsewhere, PLUGINS]) fs.mkdirSync(directory, { recursive: true })
  if (programs.over !== undefined) layOver(programs.over, place)
  const runtime = readRuntimeVersions(programs.runtime)
  const asksPlugins = isAtLeast(runtime.containerd, '1.7')
  process.env.PATH = `${programs.runtime.path}:${process.env.PATH}`
  execFileSync(programs.runtime.busybox, ['ip', 'address', 'add', `${ADDRESS}/32`, 'dev', 'lo'])
  makeCertificates(`${place}/pki`)
  const version = /v\d+\.\d+\S*/.exec(runCommand(programs.kubernetes.kubelet, ['--version']))?.[0] ?? ''
  const args = commands(programs, version, place)
  fs.writeFileSync(`${place}/kubelet.json`, kubeletsFile(version, place))

  const kubectl = (...words: string[]) => kubectlOf(programs.kubernetes.kubectl, ...words)
  const kubectlOf = (program: string, ...words: string[]) =>
    new Promise<string>((done, failed) => {
      const whole = [`--kubeconfig=${place}/pki/admin.kubeconfig`, `--cache-dir=${place}/kubectl`, ...words]
      execFile(program, whole, { maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
        if (error) failed(new Error(`kubectl ${words.join(' ')}: ${stderr.trim() || stdout.trim()}`))
        else done(stdout)
      })
    })
  const helm: Cluster['helm'] = (...words) =>
    new Promise((done, failed) => {
      const env = { ...process.env, KUBECONFIG: `${place}/pki/admin.kubeconfig`, HOME: place }
      execFile(provideClients().helm, words, { env, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
        if (error) failed(new Error(`helm ${words.join(' ')}: ${stderr.trim() || stdout.trim()}`))
        else done(stdout)
      })
    })
  const plugin: Cluster['plugin'] = (...words) => {
    const { kubectl: program } = programs.kubernetes
    const PATH = `${dirname(program)}:${PLUGIN}:${process.env.PATH}`
    const env = { ...process.env, PATH, KUBECONFIG: `${place}/pki/admin.kubeconfig`, HOME: place }
    return new Promise((done) => {
      execFile(program, ['modekeep', ...words], { env, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
        done({ exit: error === null ? 0 : Number(error.code), stdout, stderr }),
      )
    })
  }
  const of = (name: keyof typeof args) => new Daemon(name, logs, args[name], process.env)
  const plane = {
    etcd: of('etcd'),
    'kube-apiserver': of('kube-apiserver'),
    'kube-controller-manager': of('kube-controller-manager'),
    'kube-scheduler': of('kube-scheduler'),
    kubelet: of('kubelet'),
  }
  for (const name of ['etcd', 'kube-apiserver'] as const) plane[name].start()
  const network = makeNetwork(programs.plugins, `${place}/cni`)
  const containerd = await startContainerd({ place, runtime: programs.runtime }, logs, network, asksPlugins ? NRI : '')
  const daemons = { ...plane, containerd }
  const answers = () =>
    until('the API server answers', async () => {
      for (const name of ['etcd', 'kube-apiserver'] as const) plane[name].mustRun()
      return (await kubectl('get', '--raw', '/readyz')) === 'ok'
    })
  const ready = () =>
    until('the node is ready', async () => {
      for (const daemon of Object.values(daemons)) daemon.mustRun()
      // A ready node stays ready in the API server for a while after its kubelet has ended.
      await kubectl('get', '--raw', `/api/v1/nodes/${NODE}/proxy/healthz`)
      const path = '{.status.conditions[?(@.type=="Ready")].status} {.spec.taints}'
      return (await kubectl('get', 'node', NODE, '-o', `jsonpath=${path}`)).trim() === 'True'
    })
  await answers()
  for (const name of ['kube-controller-manager', 'kube-scheduler', 'kubelet'] as const) plane[name].start()
  await ready()
  await until('pods can have an account', async () => (await kubectl('get', 'serviceaccount', 'default')) !== '')

  let files = 0
  const written = (resources: readonly Resource[]) => {
    const file = `${elsewhere}/resources-${files++}.json`
    fs.writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: resources }))
    return file
  }
  const admit: Cluster['admit'] = async (resource) =>
    JSON.parse(await kubectl('create', '--dry-run=server', '-o', 'json', '-f', written([resource])))
  return {
    version,
    volumes,
    elsewhere,
    busybox: programs.runtime.busybox,
    daemons,
    runtime,
    asksPlugins,
    atLeast: (wanted) => isAtLeast(version, wanted),
    kubectl,
    helm,
    plugin,
    async apply(...resources) {
      await kubectl('apply', '-f', written(resources))
    },
    async applyKustomization(directory) {
      await kubectlOf(provideClients().kubectl, 'apply', '-k', directory)
    },
    admit,
    async refusal(...resources) {
      try {
        await kubectl('create', '--dry-run=server', '-f', written(resources))
        return undefined
      } catch (error) {
        return (error as Error).message
      }
    },
    async withdraw(...resources) {
      await kubectl('delete', '--wait', '--timeout=120s', '-f', written(resources))
    },
    async get(what, namespace = 'default') {
      const text = await kubectl('get', what, '-n', namespace, '-o', 'json', '--ignore-not-found')
      return text === '' ? undefined : JSON.parse(text)
    },
    async restart(name, signal = 'SIGTERM') {
      await daemons[name].stop(signal)
      daemons[name].start()
      await answers()
      await ready()
    },
  }
}
