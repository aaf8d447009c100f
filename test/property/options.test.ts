import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod/mini'
import { DEFAULT_CONFIG, type NodeConfig } from '../../src/config/defaults.ts'
import { decodePodSecrets } from '../../src/config/json-options.ts'
import {
  createRecordedRequestSchema,
  fromRecordedRequest,
  isSameMountRequest,
  type MountRequest,
  toRecordedRequest,
} from '../../src/config/mount-request.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { formatSource } from '../../src/config/source.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { quoteValue, Refusal } from '../../src/errors/refusal.ts'
import { createFailureReply, formatReplyLine } from '../../src/frontends/flexvolume/protocol.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { corpus } from './corpus.ts'
import { holds } from './holds.ts'
import { goodEntries, optionTexts, textOf } from './option-texts.ts'
import { entriesOf, expectNoSecret, secrets } from './secrets.ts'
import { anyText } from './texts.ts'

const DIRECTORY = '/var/lib/kubelet/pods/8c03/volumes/modekeep~fs/v'
const KINDS = ['bind', 'tmpfs', 'ext4', 'nfs', 'cifs', 'fuse.sshfs', 'fuse.constructor']
const CONFIG: NodeConfig = { ...DEFAULT_CONFIG, allow: [{ sources: ['/srv/volumes/*'], fsTypes: KINDS }] }

const read = (text: string) => parseFlexVolumeRequest(DIRECTORY, text, CONFIG, volumeKindLookup)

/** The request, or the refusal; nothing else may come out. */
function outcome(text: string): MountRequest | Refusal {
  try {
    return read(text)
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

/** Asserts what holds for any text. */
function expectPromises(text: string): void {
  const result = outcome(text)
  if (!(result instanceof Refusal)) {
    expectStable(result)
    return
  }
  expect(result.faults.length).toBeGreaterThan(0)
  for (const fault of result.faults) expect(renderFault(fault).length).toBeGreaterThan(20)
  const line = formatReplyLine(createFailureReply(result))
  expect(line.indexOf('\n')).toBe(line.length - 1)
  // An event holds 1,024 bytes.
  expect(Buffer.byteLength(JSON.parse(line).message)).toBeLessThan(1024)
  expect(JSON.parse(line)).toEqual({ status: 'Failure', message: expect.not.stringContaining('\n    at ') })
}

/** Read again from what it prints as, it is the same. */
function expectStable(request: MountRequest): void {
  const { directory, pod, namespace } = request
  const recorded = toRecordedRequest(request)
  expect(directory).toBe(DIRECTORY)
  expect(z.parse(createRecordedRequestSchema(), JSON.parse(JSON.stringify(recorded)))).toEqual(recorded)
  expect({ ...fromRecordedRequest(recorded, undefined), directory, pod, namespace }).toEqual(request)
  expect(isSameMountRequest(recorded, read(printed(request)) as MountRequest)).toBe(true)
  expect(read(printed(request))).toEqual({ ...request, pod: undefined, namespace: undefined })
  expect((pod ?? '').length).toBeLessThan(320)
  expect(pod ?? '').toContain((namespace ?? '').slice(0, 63))
}

/** A request as a pod's author would write it. */
function printed(request: MountRequest): string {
  const { ownership, readOnly, fsGroup, idmapFrom } = request
  const walks = ownership === 'walk' || ownership === 'auto'
  const options: Record<string, string | undefined> = {
    source: formatSource(request.source),
    subPath: request.subPath || undefined,
    mountOptions: request.mountOptions.join(),
    ownership,
    idmapFrom: idmapFrom === undefined ? undefined : String(idmapFrom),
    setGid: request.rootSetGid ? 'root' : undefined,
    groupAccess: walks ? fsGroup.access : undefined,
    fsGroupChangePolicy: walks ? fsGroup.changePolicy : undefined,
    restoreOnUnmount: walks ? String(request.restoreOnUnmount) : undefined,
    submounts: request.submounts,
    'kubernetes.io/fsType': request.fsType,
    'kubernetes.io/readwrite': readOnly && !request.mountOptions.includes('rw') ? 'ro' : undefined,
    'kubernetes.io/mounterArgs.FsGroup': String(fsGroup.groupId ?? -1),
  }
  return textOf(Object.entries(options).filter(([, value]) => value !== undefined))
}

describe('any options', () => {
  it.each(corpus('options'))('are parsed or refused with a message: %s', (_name, content) => {
    expectPromises(content.toString())
  })

  it('are parsed or refused with a message, and a second parse returns the same options', () => {
    holds(optionTexts, expectPromises, 4000)
  })

  it('that are valid are mostly accepted, in any order', () => {
    let accepted = 0
    let tried = 0
    holds(
      goodEntries.chain((list) => fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }))),
      ([list, shuffled]) => {
        tried++
        const result = outcome(textOf(list))
        if (!(result instanceof Refusal)) accepted++
        const other = outcome(textOf(shuffled))
        if (result instanceof Refusal) expect(other).toBeInstanceOf(Refusal)
        else expect(other).toEqual(result)
      },
      1000,
    )
    expect(accepted).toBeGreaterThan(tried / 10)
  })

  it('with an invalid value are refused, and the message names the key', () => {
    const STRICT = ['ownership', 'groupAccess', 'fsGroupChangePolicy', 'restoreOnUnmount', 'kubernetes.io/readwrite']
    const wrong = fc.oneof(fc.jsonValue({ maxDepth: 3 }), anyText).filter((value) => !isGood(value))
    holds(
      fc.tuple(fc.constantFrom(...STRICT), wrong),
      ([key, value]) => {
        const result = outcome(
          textOf([
            ['source', '/srv/volumes/data'],
            [key, value],
          ]),
        )
        expect(result).toBeInstanceOf(Refusal)
        // As JSON has it: a minus before a zero is lost.
        expect((result as Refusal).message).toContain(
          `option "${key}" is ${quoteValue(JSON.parse(JSON.stringify(value)))}`,
        )
      },
      1000,
    )
  })

  it('with an unknown key are refused, and the message names it', () => {
    const unknown = anyText.filter((key) => !key.startsWith('kubernetes.io/') && !isKnown(key))
    holds(
      unknown,
      (key) => {
        const result = outcome(
          textOf([
            ['source', '/srv/volumes/data'],
            [key, 'x'],
          ]),
        )
        expect((result as Refusal).message).toContain(`unknown ${quoteValue([key])}`)
      },
      1000,
    )
  })

  it('with a secret are refused without showing it, or parsed with the secret unchanged', () => {
    holds(
      fc.tuple(
        secrets,
        fc.oneof(goodEntries, fc.array(fc.tuple(fc.constantFrom('source', 'x', 'ownership'), anyText))),
      ),
      ([list, others]) => {
        const kept = list.filter(({ key }, index) => list.findIndex((other) => other.key === key) === index)
        const text = textOf([...others, ...entriesOf(kept)])
        const result = outcome(text)
        const said =
          result instanceof Refusal
            ? result.message + formatReplyLine(createFailureReply(result))
            : JSON.stringify(result)
        expectNoSecret(said, kept)
        const decoded = decodePodSecrets(text)
        for (const { key, bytes } of kept) expect(Buffer.from(decoded.get(key) ?? []).equals(bytes)).toBe(true)
      },
      1000,
    )
  })

  it('with a secret that cannot be decoded are refused by its key only', () => {
    const broken = fc
      .string({ minLength: 8 })
      .filter((text) => !/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 > 0)
    holds(
      broken.map((text) => `${text}~${text}`),
      (value) => {
        const text = textOf([['kubernetes.io/secret/password', value]])
        const refuse = () => decodePodSecrets(text)
        expect(refuse).toThrow('option "kubernetes.io/secret/password" is not base64')
        expect(refuse).not.toThrow(value)
      },
      500,
    )
  })
})

function isGood(value: unknown): boolean {
  const GOOD = 'none walk idmap auto keep grant OnRootMismatch Always true false ro rw'.split(' ')
  return typeof value === 'string' && GOOD.includes(value)
}

function isKnown(key: string): boolean {
  return 'source subPath mountOptions ownership idmapFrom groupAccess fsGroupChangePolicy restoreOnUnmount'
    .split(' ')
    .includes(key)
}
