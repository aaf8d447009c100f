import * as fs from 'node:fs'
import * as grpc from '@grpc/grpc-js'
import { parse } from 'protobufjs'

/** Kubelet's pod-resources API as far as it lists pods (kubernetes staging/src/k8s.io/kubelet/pkg/apis/podresources). */
export const PROTO = (version: string) => `
  syntax = "proto3";
  package ${version};
  message ListPodResourcesRequest {}
  message ListPodResourcesResponse { repeated PodResources pod_resources = 1; }
  message PodResources { string name = 1; string namespace = 2; repeated ContainerResources containers = 3; }
  message ContainerResources { string name = 1; repeated ContainerDevices devices = 2; }
  message ContainerDevices { string resource_name = 1; repeated string device_ids = 2; }
`

/** A kubelet's pod-resources socket: a real gRPC server, made by another protobuf library than the product's. */
export class PodResources {
  /** `namespace/name` */
  pods: readonly string[] = []
  /** How often it was asked. */
  asked = 0
  readonly #server: grpc.Server
  readonly #path: string

  private constructor(path: string, server: grpc.Server) {
    this.#path = path
    this.#server = server
  }

  /** @param isSilent never answers */
  static async listen(path: string, { version = 'v1', isSilent = false } = {}): Promise<PodResources> {
    const { root } = parse(PROTO(version))
    const [request, response] = ['Request', 'Response'].map((end) =>
      root.lookupType(`${version}.ListPodResources${end}`),
    )
    if (request === undefined || response === undefined) throw new Error('no messages')
    const server = new grpc.Server()
    const kubelet = new PodResources(path, server)
    const list = {
      path: `/${version}.PodResourcesLister/List`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (value: object) => Buffer.from(request.encode(value).finish()),
      requestDeserialize: (bytes: Buffer) => request.decode(bytes),
      responseSerialize: (value: object) => Buffer.from(response.encode(response.fromObject(value)).finish()),
      responseDeserialize: (bytes: Buffer) => response.decode(bytes),
    }
    server.addService(
      { list },
      {
        list(_: unknown, answer: grpc.sendUnaryData<object>) {
          kubelet.asked++
          if (isSilent) return
          const podResources = kubelet.pods.map((pod) => {
            const [namespace, name] = pod.split('/')
            const devices = [{ resourceName: 'example.com/device', deviceIds: ['1'] }]
            return { namespace, name, containers: [{ name: 'main', devices }] }
          })
          answer(null, { podResources })
        },
      },
    )
    const credentials = grpc.ServerCredentials.createInsecure()
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`unix:${path}`, credentials, (error) => (error === null ? resolve() : reject(error))),
    )
    return kubelet
  }

  close(): Promise<void> {
    this.#server.forceShutdown()
    fs.rmSync(this.#path, { force: true })
    return Promise.resolve()
  }
}
