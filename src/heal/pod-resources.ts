import * as grpc from '@grpc/grpc-js'
import { callOnce } from '../grpc/client.ts'
import { type Messages, protobufPackage } from '../grpc/protobuf.ts'

/** The fields that name a pod in kubelet's list (kubernetes staging/src/k8s.io/kubelet/pkg/apis/podresources). */
export const MESSAGES = {
  ListPodResourcesRequest: {},
  ListPodResourcesResponse: { podResources: [1, 'PodResources', 'repeated'] },
  PodResources: { name: [1, 'string'], namespace: [2, 'string'] },
} as const satisfies Messages

/** The versions since Kubernetes 1.20, and before. They differ only in fields that are not read here. */
const VERSIONS = ['v1', 'v1alpha1']

/**
 * Lists kubelet's pods as `namespace/name`, by its pod-resources socket.
 * @throws {grpc.ServiceError} if no readable answer arrives in time
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
