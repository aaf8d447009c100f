import type { Socket } from 'node:net'
import { isSameProgram, type SocketPeer } from '../../kernel/linux/socket-peer.ts'
import { listenOnPrivateSocket, type PrivateSocket } from '../../rpc/private-socket.ts'
import { MAX_RESIDENT_CALL_BYTES, parseResidentCall, type ResidentCall } from './resident-call.ts'

/** Time for a caller to send its call, ms. */
const CALL_TIMEOUT_MS = 1000

/** Time for which a caller waits until it is told another limit, ms: the configuration is read meanwhile. */
const ACCEPTED_SILENCE_MS = 5000

/** Answers one call. @param write for reports before the reply @returns the reply; undefined: the caller makes the call itself */
export type AnswerResidentCall = (call: ResidentCall, write: (text: string) => void) => Promise<string | undefined>

/**
 * Answers calls of the loader, one at a time: while one runs, the connection of another is closed, and its caller makes the
 * call itself. A call runs on if its caller ends.
 */
export function listenForResidentCalls(path: string, answer: AnswerResidentCall): Promise<PrivateSocket> {
  let isBusy = false
  const serve = async (socket: Socket, peer: SocketPeer) => {
    socket.on('error', () => {})
    if (isBusy || !isSameProgram(peer.pid)) return void socket.destroy()
    isBusy = true
    try {
      // The caller waits no longer for a worker that does not begin at once.
      socket.write(`${ACCEPTED_SILENCE_MS}\n`)
      const call = await readResidentCall(socket)
      const reply = call && (await answer(call, (text) => void socket.write(text)))
      if (reply === undefined) socket.destroy()
      else socket.end(reply)
    } catch {
      // The caller makes the call itself, and reports what is wrong with it.
      socket.destroy()
    } finally {
      isBusy = false
    }
  }
  return listenOnPrivateSocket(path, (socket, peer) => void serve(socket, peer), { allowHalfOpen: true })
}

/** @returns undefined if the caller sends no whole call in time */
async function readResidentCall(socket: Socket): Promise<ResidentCall | undefined> {
  const timer = setTimeout(() => socket.destroy(), CALL_TIMEOUT_MS)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk)
      size += chunk.length
      if (size > MAX_RESIDENT_CALL_BYTES) return undefined
    }
    // A caller that has ended meanwhile, and closed the connection, has made the call itself.
    return socket.writable ? parseResidentCall(Buffer.concat(chunks)) : undefined
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
