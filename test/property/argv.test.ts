import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseOperatorCommand } from '../../src/cli/commands/arguments.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { parseFlexVolumeCall } from '../../src/frontends/flexvolume/protocol.ts'
import { locateMountRecords } from '../../src/state/record-directories.ts'
import { type Call, kubeletCalls, operatorCalls } from './calls.ts'
import { corpusOf } from './corpus.ts'
import { holds } from './holds.ts'

const texts = (call: Call) => call.map(String)

/** What was read, or the refusal; nothing else may come out. */
function outcome<T>(read: () => T): T | Refusal {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

function expectKubelets(argv: readonly string[]): void {
  const call = outcome(() => parseFlexVolumeCall(argv))
  if (call instanceof Refusal) {
    expect(call.message.length).toBeGreaterThan(20)
    return
  }
  if (call.verb !== 'mount' && call.verb !== 'unmount') return
  // A directory has one name for every spelling, because its records are found by it.
  expect(call.directory).toMatch(/^\/[^\ufffd]*$/s)
  expect(
    call.directory
      .split('/')
      .slice(1)
      .every((part) => !['.', '..'].includes(part)),
  ).toBe(true)
  const again = parseFlexVolumeCall(['unmount', call.directory])
  expect(again).toEqual({ verb: 'unmount', directory: call.directory })
  const state = locateMountRecords({ config: { stateDir: '/state' } }, call.directory).path
  for (const name of state.split('/')) expect(Buffer.byteLength(name)).toBeLessThan(256)
}

function expectOperators(argv: readonly string[]): void {
  const command = outcome(() => parseOperatorCommand(argv, () => '/somewhere'))
  if (command instanceof Refusal) expect(command.message.length).toBeGreaterThan(20)
  else if ('directory' in command) {
    expect(command.directory).toMatch(/^\//)
    const group = 'fsGroup' in command ? ['--fsgroup', String(command.fsGroup.groupId)] : []
    expect(parseOperatorCommand([command.verb, command.directory, ...group], () => '/')).toMatchObject({
      directory: command.directory,
    })
  }
}

describe('any arguments', () => {
  it.each(corpusOf<string[]>('argv'))('are parsed or refused with a message: %s', (_name, argv) => {
    const decoded = argv.map((text) => Buffer.from(text, 'latin1').toString())
    expectKubelets(decoded)
    expectOperators(decoded)
  })

  it('of kubelet are parsed or refused with a message, and a directory has one name', () => {
    holds(kubeletCalls('/tmp/x').map(texts), expectKubelets, 3000)
  })

  it('of an operator are parsed or refused with a message, and a directory is absolute', () => {
    holds(fc.oneof(operatorCalls('/tmp/x'), kubeletCalls('/tmp/x')).map(texts), expectOperators, 3000)
  })
})
