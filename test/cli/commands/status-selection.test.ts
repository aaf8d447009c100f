import { afterEach, beforeEach, expect, it } from 'vitest'
import { parseOperatorCommand } from '../../../src/cli/commands/arguments.ts'
import { runVerb } from '../../../src/cli/commands/index.ts'
import { pollStatus, skipUnchangedStatus } from '../../../src/cli/commands/status.ts'
import type { StatusDocument } from '../../../src/cli/commands/status-document.ts'
import { containerRecords } from '../../../src/state/container-record.ts'
import { onEveryStage, type Stage } from '../../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../../helpers/tree.ts'

onEveryStage('status with a selection', (open) => {
  let stage: Stage
  let sources: string[]
  beforeEach(async () => {
    stage = open()
    sources = []
    const pods = [
      ['shop', 'cart-0'],
      ['shop', 'till'],
      ['bank', 'cart-0'],
    ] as const
    for (const [at, [namespace, name]] of pods.entries()) {
      const source = `${stage.top}/volumes/${at}`
      sources.push(source)
      makeTree(stage.fs, source, SIX_FILES)
      await stage.mount(`uid-${at}`, {
        source,
        ownership: 'walk',
        'kubernetes.io/fsGroup': '2000',
        'kubernetes.io/pod.name': name,
        'kubernetes.io/pod.namespace': namespace,
      })
    }
  })
  afterEach(() => stage.close())

  const status = async (...argv: string[]) =>
    (await runVerb(
      stage.session(),
      parseOperatorCommand(['status', ...argv], () => stage.top) as Parameters<typeof runVerb>[1],
    )) as StatusDocument
  const pods = async (...argv: string[]) => (await status(...argv)).mounts.map(({ pod }) => pod)

  it('status with a namespace shows only the mounts of that namespace', async () => {
    expect(await pods()).toEqual(['shop/cart-0', 'shop/till', 'bank/cart-0'])
    expect(await pods('-n', 'shop')).toEqual(['shop/cart-0', 'shop/till'])
    expect(await pods('-n', 'sho')).toEqual([])
  })

  it('status with a pod shows that pod and its volume, by NAMESPACE/NAME, by name or by UID', async () => {
    const found = await status('shop/cart-0')
    expect(found.mounts.map(({ pod, source }) => [pod, source])).toEqual([['shop/cart-0', sources[0]]])
    expect(found.volumes.map(({ source }) => source)).toEqual([sources[0]])
    expect(await pods('cart-0')).toEqual(['shop/cart-0', 'bank/cart-0'])
    expect(await pods('cart-0', '-n', 'bank')).toEqual(['bank/cart-0'])
  })

  it('status with a pod shows the containers of that pod', async () => {
    const record = (container: string, namespace: string, name: string) =>
      containerRecords.write(stage.session(), {
        container,
        containerName: 'app',
        sandbox: 's',
        pod: { namespace, name, uid: 'uid-9' },
        kubeletDir: `${stage.top}/kubelet`,
        boot: stage.session().host.bootId(),
        at: 0,
        state: 'started',
        volumes: [{ volume: 'data', destination: '/data', source: '/pods/uid-9/x', isOwn: false, from: 500, to: 2000 }],
      })
    stage.fs.mkdirSync(`${stage.top}/kubelet/pods/uid-9`, { recursive: true })
    record('c1', 'shop', 'web')
    record('c2', 'bank', 'web')
    const found = async (...argv: string[]) => (await status(...argv)).containers.map(({ container }) => container)
    expect(await found()).toEqual(['c1', 'c2'])
    expect(await found('-n', 'bank')).toEqual(['c2'])
    expect(await found('shop/web')).toEqual(['c1'])
    expect(await found('web')).toEqual(['c1', 'c2'])
    expect(await found('uid-9')).toEqual(['c1', 'c2'])
    expect((await status('shop/web')).containers).toMatchObject([{ onDisk: 500, group: 2000, state: 'mapped' }])
  })

  it('status shows one mount by directory, or one volume by the beginning of its name', async () => {
    const [, second] = (await status()).mounts
    if (second === undefined) throw new Error('nothing is mounted')
    expect(await pods(second.directory)).toEqual(['shop/till'])
    expect(await pods(second.volume)).toEqual(['shop/till'])
    const one = await status(second.volume)
    expect(one.volumes.map(({ volume }) => volume)).toEqual([second.volume])
    // Volumes of one file system begin alike.
    await expect(status(second.volume.slice(0, second.volume.indexOf('-')))).rejects.toThrow(
      'is the beginning of 3 volumes',
    )
  })

  it('status is refused if nothing matches the selection', async () => {
    for (const word of ['shop/none', 'none', '/none', 'dead-beef']) {
      await expect(status(word)).rejects.toThrow(
        `nothing of "${word}" is mounted or recorded on this node: "modekeep status" lists what is`,
      )
    }
  })
})

it('status --watch refreshes until the reader closes stdout, and prints only changes if stdout is no terminal', async () => {
  const found = [{ at: 1 }, { at: 1 }, { at: 2 }]
  const shown: unknown[] = []
  let looks = 0
  const show = skipUnchangedStatus<unknown>((one) => shown.push(one) < 2)
  await pollStatus(async () => found[looks++], show)
  expect({ shown, looks }).toEqual({ shown: [{ at: 1 }, { at: 2 }], looks: 3 })
})
