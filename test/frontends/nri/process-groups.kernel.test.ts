import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { SandboxReader } from '../../../src/frontends/nri/cri.ts'
import { CREATED_AT, criRuntime, infoWith } from './cri.ts'

let top: string
let servers: { close(graceMs: number): Promise<void> }[]
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-cri-'))
  servers = []
})
afterEach(async () => {
  for (const server of servers) await server.close(0)
  fs.rmSync(top, { recursive: true, force: true })
})

/** A runtime with one sandbox. */
async function runtime(name: string, sandbox: string, text: string): Promise<string> {
  const socket = join(top, name)
  servers.push(await criRuntime(socket, new RegExp(`^${sandbox}$`), text))
  return socket
}

/** Takes connections, and says nothing. */
async function silent(): Promise<string> {
  const socket = join(top, 'silent')
  const server = createServer(() => {}).listen(socket)
  await once(server, 'listening')
  servers.push({ close: async () => void server.close() })
  return socket
}

async function groupsOfPod(sandbox: string, sockets: readonly string[], withinMs = 5000) {
  using groups = new SandboxReader(() => sockets)
  return await groups.readGroups(sandbox, withinMs)
}

it("the groups of a pod's processes are read from the runtime that has its sandbox", async () => {
  const other = await runtime('other', 'theirs', infoWith([1]))
  const ours = await runtime('ours', 'sandbox', infoWith([2000, 3000]))
  expect(await groupsOfPod('sandbox', [join(top, 'none'), other, ours])).toEqual({
    certain: [2000, 3000],
    possible: [],
  })
  expect(await groupsOfPod('nobodys', [other, ours])).toBeUndefined()
})

it("the groups of a pod's processes are unknown if no runtime has its sandbox or responds in time", async () => {
  expect(await groupsOfPod('sandbox', [await runtime('terse', 'sandbox', '{}')])).toBeUndefined()
  expect(await groupsOfPod('sandbox', [await silent()], 50)).toBeUndefined()
  fs.writeFileSync(join(top, 'file'), '')
  expect(await groupsOfPod('sandbox', [join(top, 'file')])).toBeUndefined()
})

it("the groups of a pod's processes are read after a restart of the runtime", async () => {
  const socket = await runtime('one', 'sandbox', infoWith([2000]))
  using asked = new SandboxReader(() => [socket])
  expect(await asked.readGroups('sandbox', 5000)).toEqual({ certain: [2000], possible: [] })
  await servers.pop()?.close(0)
  expect(await asked.readGroups('sandbox', 5000)).toBeUndefined()
  await runtime('one', 'sandbox', infoWith([3000]))
  await expect
    .poll(() => asked.readGroups('sandbox', 5000), { timeout: 60_000 })
    .toEqual({ certain: [3000], possible: [] })
})

it('the sandboxes of each runtime that responds are listed with the time of their creation', async () => {
  const sockets = [await runtime('one', 'first', '{}'), join(top, 'none'), await runtime('two', 'second', '{}')]
  using sandboxes = new SandboxReader(() => sockets)
  const createdAtMs = Number(CREATED_AT / 1_000_000n)
  expect(await sandboxes.list()).toEqual([
    [{ id: '^first$', isReady: true, createdAtMs }],
    [{ id: '^second$', isReady: true, createdAtMs }],
  ])
})

it('a list of sandboxes of more than 4 MiB, the default limit of gRPC, is read', async () => {
  const socket = await runtime('large', 'x'.repeat(5 << 20), '{}')
  using sandboxes = new SandboxReader(() => [socket])
  expect((await sandboxes.list()).map((list) => list.length)).toEqual([1])
})
