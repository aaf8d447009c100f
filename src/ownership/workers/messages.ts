import { decode, type Encoded, join, split } from '../journal/codec.ts'
import type { PackedFrames } from '../walk/frames.ts'
import type { Answer, EncodedAnswer, Question } from '../walk/ledger.ts'
import type { WalkReport } from '../walk/report.ts'
import type { TaskSpec } from '../walk/tasks.ts'
import type { Boundary } from '../walk/traverse.ts'

/** What a worker is started with. */
export interface WorkerData {
  index: number
  size: number
  spec: TaskSpec
  inside: Boundary
  shared: Int32Array
}

/** Places in the shared memory: parts waiting to be taken, whether all must stop, then one for each worker. */
export const QUEUED = 0
export const STOP = 1

/** Counts the messages sent to a worker, which sleeps on it. */
export const signalOf = (index: number) => STOP + 1 + index

export type ToPool =
  | { say: 'idle' }
  | { say: 'done' }
  | { say: 'share'; part: PackedFrames }
  | { say: 'record'; batch: number; records: Uint8Array<ArrayBuffer> }
  | { say: 'settle'; batch: number }
  | { say: 'forget'; keys: BigInt64Array }
  | { say: 'ask'; question: Question }
  | { say: 'report'; report: WalkReport }
  | { say: 'end' }
  | { say: 'failed'; error: unknown }

export type ToWorker =
  | { say: 'part'; part: PackedFrames }
  | { say: 'durable'; batch: number }
  | { say: 'answers'; answers: PackedAnswers }
  | { say: 'end' }

/** Answers with their records apart, each of which is told by whether it is settled. */
interface PackedAnswers {
  kinds: ('wait' | boolean | undefined)[]
  records: Uint8Array<ArrayBuffer>
}

export function packAnswers(answers: readonly EncodedAnswer[]): PackedAnswers {
  return {
    kinds: answers.map((answer) => (typeof answer === 'object' ? answer.settled : answer)),
    records: join(answers.filter((answer) => typeof answer === 'object')),
  }
}

export function unpackAnswers({ kinds, records }: PackedAnswers): Answer[] {
  const encoded = split(records).values()
  return kinds.map((kind) => (typeof kind === 'boolean' ? decode(encoded.next().value as Encoded, kind) : kind))
}
