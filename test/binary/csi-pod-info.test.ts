import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { call } from '../frontends/csi/kubelet.ts'
import { CsiNode, mounted, until } from '../frontends/csi/node.ts'
import { cannotMount } from './modekeep.ts'

let node: CsiNode
let source: string

/** An API server that has one object. */
class Api {
  readonly requests: { url: string | undefined; token: string | undefined }[] = []
  podInfoOnMount = true
  status = 200
  readonly directory: string
  readonly #server: Server

  constructor(directory: string) {
    this.directory = directory
    fs.mkdirSync(directory)
    const [key, ca] = [`${directory}/key`, `${directory}/ca.crt`]
    const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=test']
    const args = ['req', '-x509', ...made, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', ca]
    execFileSync('openssl', args, { stdio: 'ignore' })
    fs.writeFileSync(`${directory}/token`, 'token-1\n', { mode: 0o600 })
    this.#server = createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(ca) }, (request, response) => {
      this.requests.push({ url: request.url, token: request.headers.authorization })
      response.statusCode = this.status
      const { podInfoOnMount } = this
      response.end(JSON.stringify({ kind: 'CSIDriver', metadata: { name: 'modekeep.csi' }, spec: { podInfoOnMount } }))
    })
    this.#server.listen(0, '127.0.0.1')
    onTestFinished(() => void this.#server.close())
  }

  async options(): Promise<string[]> {
    if (!this.#server.listening) await once(this.#server, 'listening')
    const { port } = this.#server.address() as AddressInfo
    return ['--api-server', `127.0.0.1:${port}`, '--api-access', this.directory]
  }
}

const register = () =>
  call({ socket: node.registration }, 'Registration/NotifyRegistrationStatus', { plugin_registered: true, error: '' })

/** As a PersistentVolume's author writes it where kubelet names no pod. */
const publishForged = () => node.publish(1, source, { ephemeral: false })

describe.skipIf(cannotMount !== '')(`a CSI server that cannot tell whether podInfoOnMount is set${cannotMount}`, () => {
  beforeEach(() => {
    node = new CsiNode({ isStated: false })
    source = node.volume('data', 1)
    return () => node.end()
  })

  it('refuses every publication by default, and publishes once the configuration has csiPodInfoOnMount', async () => {
    await node.serve()
    expect(await publishForged()).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('"csiPodInfoOnMount": true'),
    })
    expect(fs.existsSync(node.target(1))).toBe(false)
    expect((await node.unpublish(1)).code).toBe('OK')
    node.configure({ csiPodInfoOnMount: true })
    await register()
    expect((await publishForged()).code).toBe('OK')
  })

  it('reads its CSIDriver object at each registration with the current token', async () => {
    const api = new Api(`${node.top}/access`)
    await node.serve({ options: await api.options() })
    expect((await publishForged()).code).toBe('OK')
    api.podInfoOnMount = false
    fs.writeFileSync(`${api.directory}/token`, 'token-2\n')
    await register()
    const refused = { code: 'FAILED_PRECONDITION', message: expect.stringContaining('the object does not say so') }
    expect(await node.publish(2, source)).toMatchObject(refused)
    expect(mounted(node.target(1))).toBe(true)
    expect((await node.unpublish(1)).code).toBe('OK')
    api.podInfoOnMount = true
    await register()
    expect((await node.publish(2, source)).code).toBe('OK')
    // Without an answer the last one holds.
    api.status = 503
    await register()
    expect((await node.publish(3, source)).code).toBe('OK')
    expect(new Set(api.requests.map(({ url }) => url))).toEqual(
      new Set(['/apis/storage.k8s.io/v1/csidrivers/modekeep.csi']),
    )
    expect(api.requests.map(({ token }) => token).at(0)).toBe('Bearer token-1')
    expect(api.requests.map(({ token }) => token).at(-1)).toBe('Bearer token-2')
    expect(node.stdout).not.toContain('token-')
  })

  it.each([
    [404, 'there is no such object'],
    [403, 'HTTP status 403'],
  ])('refuses to publish if the API server returns %d', async (status, why) => {
    const api = new Api(`${node.top}/access`)
    api.status = status
    await node.serve({ options: await api.options() })
    expect(await publishForged()).toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining(why) })
  })

  it('refuses to publish if a server with another certificate replies', async () => {
    const [api, other] = [new Api(`${node.top}/access`), new Api(`${node.top}/other`)]
    const [, server = ''] = await other.options()
    await node.serve({ options: ['--api-server', server, '--api-access', api.directory] })
    expect(await publishForged()).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('the object cannot be read'),
    })
    expect(other.requests).toEqual([])
  })
})

describe.skipIf(cannotMount !== '')(`a CSI target_path${cannotMount}`, () => {
  beforeEach(async () => {
    node = new CsiNode()
    source = node.volume('data', 1)
    await node.serve()
    return () => node.end()
  })

  const publishAt = (path: string) =>
    call({ socket: node.socket }, 'Node/NodePublishVolume', {
      volume_id: 'v',
      target_path: path,
      volume_capability: { mount: {}, access_mode: { mode: 5 } },
      volume_context: {
        source,
        'csi.storage.k8s.io/pod.name': 'p',
        'csi.storage.k8s.io/pod.namespace': 'shop',
        'csi.storage.k8s.io/pod.uid': node.uid(1),
        'csi.storage.k8s.io/ephemeral': 'false',
      },
    })
  const unpublishAt = (path: string) =>
    call({ socket: node.socket }, 'Node/NodeUnpublishVolume', { volume_id: 'v', target_path: path })

  it('outside of the pods directory is refused, and nothing is created there', async () => {
    fs.mkdirSync(`${node.top}/pods/x`, { recursive: true })
    for (const path of [`${node.top}/target`, `${node.top}/pods/x/target`, `${node.kubelet}/pods`, '/srv/target']) {
      expect(await publishAt(path)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining(`is not below ${node.kubelet}/pods`),
      })
      expect(fs.existsSync(`${node.top}/target`)).toBe(false)
    }
    expect(fs.readdirSync(`${node.top}/pods/x`)).toEqual([])
  })

  it("below a link to kubelet's directory, or at an unusual place below pods, is published", async () => {
    fs.symlinkSync(node.kubelet, `${node.top}/link`)
    const target = node.target(1)
    expect((await publishAt(target.replace(node.kubelet, `${node.top}/link`))).code).toBe('OK')
    expect(mounted(target)).toBe(true)
    fs.mkdirSync(`${node.kubelet}/pods/csi-mount`)
    const other = `${node.kubelet}/pods/csi-mount/target`
    expect((await publishAt(other)).code).toBe('OK')
    for (const path of [target, other]) {
      expect((await unpublishAt(path)).code).toBe('OK')
      expect(fs.existsSync(path)).toBe(false)
    }
  })

  it('that was never published is unpublished with success, and stays unchanged', async () => {
    const [empty, filled, foreign] = [`${node.top}/empty`, `${node.top}/filled`, node.target(2)]
    fs.mkdirSync(empty)
    fs.mkdirSync(`${filled}/kept`, { recursive: true })
    fs.mkdirSync(foreign)
    fs.writeFileSync(`${foreign.slice(0, -'/mount'.length)}/vol_data.json`, '{"driverName":"other.csi"}')
    execFileSync('mount', ['-t', 'tmpfs', 'other', foreign])
    fs.writeFileSync(`${foreign}/kept`, '')
    const unused = node.target(3)
    fs.mkdirSync(unused)
    const flex = node.podDirectory('flex')
    expect(await node.call('mount', flex, JSON.stringify({ source, 'kubernetes.io/readwrite': 'rw' }))).toMatchObject({
      status: 'Success',
    })
    for (const path of [empty, filled, foreign, unused, flex, `${node.top}/missing`]) {
      expect(await unpublishAt(path), path).toEqual({ code: 'OK', message: '', reply: {} })
    }
    expect([empty, unused].map((path) => fs.existsSync(path))).toEqual([true, true])
    expect(fs.existsSync(`${filled}/kept`)).toBe(true)
    expect(fs.existsSync(`${foreign}/kept`)).toBe(true)
    expect(mounted(flex)).toBe(true)
  })

  it('that existed before the publication is unmounted but not removed', async () => {
    const target = node.target(1)
    fs.mkdirSync(target)
    expect((await node.publish(1, source)).code).toBe('OK')
    expect((await node.publish(1, source)).code).toBe('OK')
    expect((await node.unpublish(1)).code).toBe('OK')
    expect([mounted(target), fs.existsSync(target)]).toEqual([false, true])
    expect((await node.unpublish(1)).code).toBe('OK')
    expect(fs.existsSync(target)).toBe(true)
    await until(() => node.mountState().length === 0)
  })
})
