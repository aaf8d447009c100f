import * as fs from 'node:fs'
import { expect } from 'vitest'
import { expectNothingLeft, waitUntil } from './faults.ts'
import { GROUP, listOwnership, type ServerNode, SUCCESS } from './node.ts'

/** A pod's options for a volume of a server, and a switch for the server's outage. */
export interface ServerOutage {
  node: ServerNode
  options: Record<string, string> & { source: string }
  stop(): void
  restart(): void
}

export interface OutageVolume extends ServerOutage {
  /** The volume, as the server has it. */
  path: string
}

/** So many that an outage begins in the middle of a walk. */
export const MANY_FILES = 3000
/** What a call may take while the server does not respond: its limit of 10 s for programs, of some 40 s for a walk. */
export const LIMIT_SECONDS = 100
const WALKED = { ownership: 'walk', restoreOnUnmount: 'true' }

const hasGroup = (path: string, group: number) =>
  fs.readdirSync(path).some((name) => fs.statSync(`${path}/${name}`).gid === group)

export const INTERRUPTED_WALK_TITLE =
  'a walk that is interrupted fails within its limit, and the next mount and unmount complete it'

export async function interruptWalk({ node, path, options, stop, restart }: OutageVolume): Promise<void> {
  const before = listOwnership(path)
  const walk = node.mount('a', { ...options, ...WALKED })
  await waitUntil('the walk changes no file', () => hasGroup(path, GROUP))
  stop()
  const { status, message, seconds } = await walk
  expect([status, message]).toEqual(['Failure', expect.stringMatching(/does not respond|failed/)])
  expect(seconds).toBeLessThan(LIMIT_SECONDS)
  restart()
  expect(await node.mount('a', { ...options, ...WALKED })).toMatchObject(SUCCESS)
  expect(await node.unmount('a')).toMatchObject(SUCCESS)
  expect(listOwnership(path)).toEqual(before)
  await expectNothingLeft(node, 'a')
}

export const INTERRUPTED_RESTORE_TITLE =
  'a restore that is interrupted is reported by status and gc, and runs at the next unmount'

export async function interruptRestore({ node, path, options, stop, restart }: OutageVolume): Promise<void> {
  const before = listOwnership(path)
  expect(await node.mount('a', { ...options, ...WALKED })).toMatchObject(SUCCESS)
  const restore = node.unmount('a')
  await waitUntil('the restore changes no file', () => hasGroup(path, 100))
  stop()
  const { seconds } = await restore
  expect(seconds).toBeLessThan(LIMIT_SECONDS)
  const status = node.run('status').text
  console.log(status, node.run('gc', '--dry-run').text, node.run('heal').text)
  expect(status).toContain(`mount ${options.source}`)
  restart()
  expect(await node.mount('a', { ...options, ...WALKED })).toMatchObject(SUCCESS)
  expect(await node.unmount('a')).toMatchObject(SUCCESS)
  expect(listOwnership(path)).toEqual(before)
  await expectNothingLeft(node, 'a')
}

/** @param refused what the failed mount is expected to say */
export async function mountDuringOutage(
  { node, options, stop, restart }: ServerOutage,
  refused: RegExp,
): Promise<void> {
  stop()
  const { status, message, seconds } = await node.mount('a', options)
  expect([status, message]).toEqual(['Failure', expect.stringMatching(refused)])
  expect(seconds).toBeLessThan(LIMIT_SECONDS)
  restart()
  expect(await node.mount('a', options)).toMatchObject(SUCCESS)
  expect(await node.unmount('a')).toMatchObject(SUCCESS)
  await expectNothingLeft(node, 'a')
}

/** Begins the outage while the volume is mounted. @param unmountSeconds what the unmount may take at most */
export async function unmountDuringOutage(
  { node, options, stop, restart }: ServerOutage,
  unmountSeconds: number,
  checkMounted = () => {},
): Promise<void> {
  expect(await node.mount('a', options)).toMatchObject(SUCCESS)
  checkMounted()
  stop()
  const again = await node.mount('a', options)
  expect(again.seconds).toBeLessThan(LIMIT_SECONDS)
  console.log(node.run('heal').text)
  const { status, seconds } = await node.unmount('a')
  expect(status).toBe('Success')
  expect(seconds).toBeLessThan(unmountSeconds)
  restart()
  await expectNothingLeft(node, 'a')
}
