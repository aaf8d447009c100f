import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CLUSTER_RESOURCES, type ClusterObjects, type ResourceName } from './cluster-objects.ts'

/** Serves lists of objects and the discovery of their resources, as kubectl queries them. It has no other verb. */
export async function startApiServer(objects: ClusterObjects): Promise<{ url: string; server: Server }> {
  const names = (Object.keys(CLUSTER_RESOURCES) as ResourceName[]).filter((name) => objects[name] !== undefined)
  const groups = [...new Set(names.map((name) => CLUSTER_RESOURCES[name].group))]
  const replies = new Map<string, object>([
    ['/api', { kind: 'APIVersions', versions: ['v1'] }],
    [
      '/apis',
      {
        kind: 'APIGroupList',
        apiVersion: 'v1',
        groups: groups
          .filter((group) => group !== '')
          .map((group) => {
            const version = { groupVersion: `${group}/v1`, version: 'v1' }
            return { name: group, versions: [version], preferredVersion: version }
          }),
      },
    ],
  ])
  for (const group of groups) {
    const resources = names
      .filter((name) => CLUSTER_RESOURCES[name].group === group)
      .map((name) => {
        const { kind, isNamespaced } = CLUSTER_RESOURCES[name]
        return { name, singularName: '', namespaced: isNamespaced, kind, verbs: ['get', 'list'] }
      })
    const groupVersion = group === '' ? 'v1' : `${group}/v1`
    replies.set(rootOf(group), { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources })
  }
  for (const name of names) {
    const { group, kind, isNamespaced } = CLUSTER_RESOURCES[name]
    const apiVersion = group === '' ? 'v1' : `${group}/v1`
    const items = (objects[name] ?? []).map((item) => ({ apiVersion, kind, ...item }))
    const list = (some: object[]) => ({ apiVersion, kind: `${kind}List`, metadata: {}, items: some })
    if (isNamespaced) {
      for (const namespace of new Set(items.map(({ metadata }) => metadata.namespace)))
        replies.set(
          `${rootOf(group)}/namespaces/${namespace}/${name}`,
          list(items.filter((item) => item.metadata.namespace === namespace)),
        )
    } else replies.set(`${rootOf(group)}/${name}`, list(items))
    for (const item of items) if (!isNamespaced) replies.set(`${rootOf(group)}/${name}/${item.metadata.name}`, item)
  }
  const server = createServer((request, response) => {
    const reply = replies.get((request.url ?? '').replace(/\?.*/, ''))
    response.writeHead(reply ? 200 : 404, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify(
        reply ?? {
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          reason: 'NotFound',
          code: 404,
          message: request.url,
        },
      ),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

const rootOf = (group: string): string => (group === '' ? '/api/v1' : `/apis/${group}/v1`)
