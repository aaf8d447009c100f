import { quoted, Refusal } from '../errors/refusal.ts'
import { readOwned } from '../host/read-file.ts'

/** Access of the server to its CSIDriver object. */
interface ApiAccess {
  /** `HOST:PORT` of the API server. */
  readonly server: string
  /** Directory with the files `token` and `ca.crt` of a service account. */
  readonly directory: string
}

/** Value of `podInfoOnMount`, or 'no object' if the CSIDriver object does not exist. */
export type PodInfoAnswer = boolean | 'no object'

const TIMEOUT_MS = 5000
const MAX_ANSWER_LENGTH = 1 << 20

/**
 * Reads `podInfoOnMount` of one CSIDriver object. Each request reads the token again, because kubelet rotates it.
 * @throws {Error} if the API server gives no usable answer
 */
export async function readPodInfoOnMount({ server, directory }: ApiAccess, name: string): Promise<PodInfoAnswer> {
  const token = readAccessFile(`${directory}/token`).toString().trim()
  const ca = readAccessFile(`${directory}/ca.crt`)
  const { status, text } = await getObject(server, `/apis/storage.k8s.io/v1/csidrivers/${name}`, { token, ca })
  if (status === 404) return 'no object'
  if (status !== 200) throw new Error(`the API server answers HTTP status ${status}`)
  return parsePodInfoOnMount(text, name)
}

/** Parses the field of an object in JSON. @throws {Error} if the text is another object */
export function parsePodInfoOnMount(text: string, name: string): boolean {
  const object: unknown = JSON.parse(text)
  const { kind, metadata, spec } = (object ?? {}) as {
    kind?: unknown
    metadata?: { name?: unknown }
    spec?: { podInfoOnMount?: unknown }
  }
  if (kind !== 'CSIDriver' || metadata?.name !== name) {
    throw new Error(`the API server answers with another object than CSIDriver ${quoted(name)}`)
  }
  return spec?.podInfoOnMount === true
}

function readAccessFile(path: string): Buffer {
  const bytes = readOwned(path)
  if (bytes === undefined)
    throw Refusal.of('csi-pod-info', `${path} does not exist`, `name the directory of a service account's files`)
  return bytes
}

async function getObject(
  server: string,
  path: string,
  { token, ca }: { token: string; ca: Buffer },
): Promise<{ status: number; text: string }> {
  // Loaded only by a server with access to the API, because TLS takes memory.
  const { get } = await import('node:https')
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(server) ?? []
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const request = get({ host, port, path, ca, headers, signal, agent: false }, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      text += chunk
      if (text.length > MAX_ANSWER_LENGTH) response.destroy(new Error('the answer is larger than 1 MiB'))
    })
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    response.on('error', reject)
  })
  request.on('error', (error) =>
    reject(signal.aborted ? new Error(`the API server does not answer within ${TIMEOUT_MS / 1000} s`) : error),
  )
  return promise
}
