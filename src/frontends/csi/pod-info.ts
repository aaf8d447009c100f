import { formatError, quoteValue, Refusal } from '../../errors/refusal.ts'
import { readOwnedFile } from '../../kernel/read-file.ts'
import type { LogEvent } from '../../log/call-log.ts'
import { CsiCallFailure } from './worker-tasks.ts'

interface PodInfoOnMountSources {
  /** The name of the CSIDriver object. */
  readonly name: string
  /** Whether the node's configuration states `csiPodInfoOnMount: true`. */
  readonly isStated: () => Promise<boolean>
  /** Reads the CSIDriver object from the API server; undefined if this server has no access to it. */
  readonly readObject: (() => Promise<PodInfoOnMountAnswer>) | undefined
  /** Returns milliseconds. */
  readonly now: () => number
  readonly log: LogEvent
}

/** Interval between checks of a running server. */
export const POD_INFO_CHECK_INTERVAL_MS = 5 * 60_000
/** Minimum interval between checks that calls cause while publishing is refused. */
const MIN_POD_INFO_RETRY_MS = 5000

/**
 * Refuses to publish until the CSIDriver object is known to have `podInfoOnMount: true`. Without it the author of a
 * PersistentVolume could write any namespace into its attributes, and the node's rules depend on the namespace.
 */
export class PodInfoOnMountGuard {
  readonly #sources: PodInfoOnMountSources
  #isConfirmed = false
  #reason = 'it was not checked yet'
  #checkedAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined

  constructor(sources: PodInfoOnMountSources) {
    this.#sources = sources
  }

  /** Starts a check, or joins the running one. Never rejects. */
  check(): Promise<void> {
    this.#running ??= this.#check().finally(() => {
      this.#checkedAt = this.#sources.now()
      this.#running = undefined
    })
    return this.#running
  }

  /** @throws {CsiCallFailure} FAILED_PRECONDITION unless the field is known to be true */
  async assertConfirmed(): Promise<void> {
    const isDue = !this.#isConfirmed && this.#sources.now() - this.#checkedAt >= MIN_POD_INFO_RETRY_MS
    if (this.#running !== undefined || isDue) await this.check()
    if (this.#isConfirmed) return
    throw new CsiCallFailure(
      'FAILED_PRECONDITION',
      `modekeep does not know that the CSIDriver object ${quoteValue(this.#sources.name)} says podInfoOnMount: true (${this.#reason}): let "modekeep csi" read the object by --api-server and --api-access, or write "csiPodInfoOnMount": true into the node's configuration`,
    )
  }

  async #check(): Promise<void> {
    const { isStated, readObject } = this.#sources
    try {
      if (await isStated()) return this.#set(true, "the node's configuration states it")
      if (readObject === undefined) return this.#set(false, 'the server may not read the object')
      const answer = await readObject()
      if (answer === 'no object') return this.#set(false, 'there is no such object')
      this.#set(answer, answer ? 'the object says so' : 'the object does not say so')
    } catch (error) {
      // The last answer stays valid while the API server is unreachable: only a cluster administrator changes the object.
      this.#set(this.#isConfirmed, `the object cannot be read: ${formatError(error)}`)
    }
  }

  #set(isConfirmed: boolean, reason: string): void {
    if (isConfirmed === this.#isConfirmed && reason === this.#reason) return
    this.#isConfirmed = isConfirmed
    this.#reason = reason
    // A value from the node's configuration is not logged.
    if (!isConfirmed) this.#sources.log('warn', 'pod-info-unconfirmed', { message: reason })
    else if (this.#sources.readObject !== undefined) this.#sources.log('info', 'pod-info', { message: reason })
  }
}

/** Access of the server to its CSIDriver object. */
interface ApiServerAccess {
  /** `HOST:PORT` of the API server. */
  readonly server: string
  /** Directory with the files `token` and `ca.crt` of a service account. */
  readonly directory: string
}

/** Value of `podInfoOnMount`, or 'no object' if the CSIDriver object does not exist. */
export type PodInfoOnMountAnswer = boolean | 'no object'

const API_REQUEST_TIMEOUT_MS = 5000
const MAX_API_RESPONSE_LENGTH = 1 << 20

/**
 * Reads `podInfoOnMount` of one CSIDriver object. Each request reads the token again, because kubelet rotates it.
 * @throws {Error} if the API server gives no usable answer
 */
export async function readPodInfoOnMount(
  { server, directory }: ApiServerAccess,
  name: string,
): Promise<PodInfoOnMountAnswer> {
  const token = readServiceAccountFile(`${directory}/token`).toString().trim()
  const ca = readServiceAccountFile(`${directory}/ca.crt`)
  const { status, text } = await fetchApiObject(server, `/apis/storage.k8s.io/v1/csidrivers/${name}`, { token, ca })
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
    throw new Error(`the API server answers with another object than CSIDriver ${quoteValue(name)}`)
  }
  return spec?.podInfoOnMount === true
}

function readServiceAccountFile(path: string): Buffer {
  const bytes = readOwnedFile(path)
  if (bytes === undefined)
    throw Refusal.of('csi-pod-info', `${path} does not exist`, `name the directory of a service account's files`)
  return bytes
}

async function fetchApiObject(
  server: string,
  path: string,
  { token, ca }: { token: string; ca: Buffer },
): Promise<{ status: number; text: string }> {
  // Loaded only by a server with access to the API, because TLS takes memory.
  const { get } = await import('node:https')
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(server) ?? []
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
  const signal = AbortSignal.timeout(API_REQUEST_TIMEOUT_MS)
  const request = get({ host, port, path, ca, headers, signal, agent: false }, (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      text += chunk
      if (text.length > MAX_API_RESPONSE_LENGTH) response.destroy(new Error('the answer is larger than 1 MiB'))
    })
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    response.on('error', reject)
  })
  request.on('error', (error) =>
    reject(
      signal.aborted ? new Error(`the API server does not answer within ${API_REQUEST_TIMEOUT_MS / 1000} s`) : error,
    ),
  )
  return promise
}
