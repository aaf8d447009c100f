import * as grpc from '@grpc/grpc-js'
import { callOnce } from '../grpc/client.ts'
import { type Messages, protobufPackage } from '../grpc/protobuf.ts'

/** Of what kubelet lists of each pod only its name (kubernetes staging/src/k8s.io/kubelet/pkg/apis/podresources). */
export const MESSAGES = {
  ListPodResourcesRequest: {},
  ListPodResourcesResponse: { podResources: [1, 'PodResources', 'repeated'] },
  PodResources: { name: [1, 'string'], namespace: [2, 'string'] },
} as const satisfies Messages

/** Since Kubernetes 1.20, and before; they differ in what is not read here. */
const VERSIONS = ['v1', 'v1alpha1']

/**
 * The pods that kubelet has, as `namespace/name`, by its pod-resources socket.
 * @throws {grpc.ServiceError} where no answer comes in time, or none that can be read
 */
export async function listPods(socket: string, withinMs: number): Promise<string[]> {
  let unknown: unknown
  for (const version of VERSIONS) {
    const { method } = protobufPackage(version, MESSAGES)
    const List = method('PodResourcesLister/List', 'ListPodResourcesRequest', 'ListPodResourcesResponse')
    try {
      const { podResources } = await callOnce(socket, List, {}, withinMs)
      return podResources.map(({ namespace, name }) => `${namespace}/${name}`)
    } catch (error) {
      if ((error as Partial<grpc.ServiceError>).code !== grpc.status.UNIMPLEMENTED) throw error
      unknown = error
    }
  }
  throw unknown
}
