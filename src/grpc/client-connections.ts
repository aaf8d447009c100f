import type { Socket } from 'node:net'
import { type ChannelCredentials, credentials } from '@grpc/grpc-js'

/**
 * The connections of one client. grpc-js closes a client without the connection whose server has not answered the HTTP/2
 * handshake: each call to a runtime or kubelet that hangs would leave a descriptor.
 */
export class ClientConnections implements Disposable {
  readonly credentials: ChannelCredentials
  readonly #sockets = new Set<Socket>()
  #isClosed = false

  constructor() {
    this.credentials = credentials.createInsecure()
    const createConnector = this.credentials._createSecureConnector.bind(this.credentials)
    this.credentials._createSecureConnector = (...args) => {
      const connector = createConnector(...args)
      return { ...connector, connect: (socket) => connector.connect(this.#add(socket)) }
    }
  }

  /** @returns the socket, which is closed at once if the client is */
  #add(socket: Socket): Socket {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    if (this.#isClosed) socket.destroy()
    return socket
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    for (const socket of this.#sockets) socket.destroy()
  }
}
