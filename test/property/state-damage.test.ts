import * as fs from 'node:fs'
import { dirname } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Refusal } from '../../src/errors/refusal.ts'
import { getErrno } from '../../src/kernel/host.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { listTree, makeTree } from '../helpers/tree.ts'
import { type Damage, damaged, damages } from './damage.ts'
import { holdsAsync, runs } from './holds.ts'

const title = `a damaged state directory${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

const TREE = [
  'file plain 0644 5',
  'file none 0000 6',
  'file suid 4711 7',
  'file sgid 2755 8',
  'dir d 0750 9',
  'file d/a 0640 10',
  'dir d/shared 3777 11',
  'file d/shared/f 0600 12',
]

type Rude = { kind: 'removed' | 'swapped' | 'a directory' | 'a link' | 'with a foreign file beside it' }

type What = Damage | Rude

const whats: fc.Arbitrary<What> = fc.oneof(
  { weight: 3, arbitrary: damages },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('removed', 'swapped', 'a directory', 'a link', 'with a foreign file beside it'),
    }),
  },
)

type Step = 'mount a' | 'mount b' | 'unmount a' | 'unmount b' | 'heal' | 'reboot'
const STEPS: readonly Step[] = ['mount a', 'mount b', 'unmount a', 'unmount b', 'heal', 'reboot']

describe.skipIf(!isRoot)(title, () => {
  it('calls with a damaged state directory fail with a message at worst, and every inode has its first or the requested group', async () => {
    const stage = kernelStage('tmpfs')
    onTestFinished(() => stage.close())
    const seen = { done: 0, refused: 0 }
    let count = 0
    await holdsAsync(
      fc.tuple(
        fc.constantFrom('keep', 'grant'),
        fc.array(fc.tuple(fc.nat(), fc.nat(), whats), { minLength: 1, maxLength: 2 }),
        fc.array(fc.constantFrom(...STEPS), { minLength: 2, maxLength: 6 }),
      ),
      async ([groupAccess, list, steps]) => {
        const source = `${stage.top}/volumes/${count++}`
        makeTree(fs, source, TREE)
        const original = owners(source)
        await take(stage, source, groupAccess, 'mount a')
        const walked = owners(source)
        for (const [file, other, what] of list) spoil(stage, file, other, what)
        for (const step of [...steps, 'unmount a', 'unmount b'] as const) {
          seen[(await outcome(() => take(stage, source, groupAccess, step))) ? 'done' : 'refused']++
          expectSound(owners(source), original, walked)
        }
        for (const pod of ['a', 'b']) expect(stage.layers(pod)).toEqual([])
        for (const name of ['state', 'elsewhere']) fs.rmSync(`${stage.top}/${name}`, { recursive: true, force: true })
        fs.rmSync(source, { recursive: true })
      },
      80,
    )
    expect(seen.done).toBeGreaterThan(runs(100))
    expect(seen.refused).toBeGreaterThan(runs(10))
  })
})

function owners(source: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(listTree(fs, source)).map(([path, { mode, gid }]) => [path, `${mode} ${gid}`]),
  )
}

function expectSound(now: Record<string, string>, original: Record<string, string>, walked: Record<string, string>) {
  for (const [path, seen] of Object.entries(now)) expect([original[path], walked[path]], path).toContain(seen)
}

async function take(stage: Stage, source: string, groupAccess: string, step: Step): Promise<void> {
  if (step === 'heal') {
    await stage.heal()
    return
  }
  if (step === 'reboot') {
    stage.reboot()
    return
  }
  const [verb, pod = ''] = step.split(' ')
  if (verb === 'unmount') {
    await stage.unmount(pod)
    return
  }
  const asked = { source, ownership: 'walk', groupAccess, fsGroupChangePolicy: 'Always', restoreOnUnmount: 'true' }
  await stage.mount(pod, { ...asked, 'kubernetes.io/fsGroup': '2000' })
}

/** Whether it was done. What is thrown must be for people: a refusal, or what the system said of a file. */
async function outcome(work: () => Promise<void>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    if (!(error instanceof Refusal) && getErrno(error) === undefined) throw error
    expect((error as Error).message).toMatch(/.{15}/)
    return false
  }
}

/** The files a damage can hit, in a fixed order. */
function filesOf(stage: Stage): string[] {
  const entries = fs.readdirSync(`${stage.top}/state`, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && !/lock$/.test(entry.name))
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .sort()
}

function spoil(stage: Stage, file: number, other: number, what: What): void {
  const files = filesOf(stage)
  const path = files[file % files.length]
  const from = files[other % files.length]
  if (path === undefined || from === undefined) return
  if (what.kind === 'with a foreign file beside it') fs.writeFileSync(`${dirname(dirname(path))}/%foreign`, 'foreign')
  else if (what.kind === 'swapped') fs.copyFileSync(from, path)
  else if (what.kind === 'removed' || what.kind === 'a directory' || what.kind === 'a link') {
    fs.rmSync(path)
    if (what.kind === 'a directory') fs.mkdirSync(path)
    if (what.kind === 'a link') fs.symlinkSync(`${stage.top}/elsewhere`, path)
  } else fs.writeFileSync(path, damaged(fs.readFileSync(path), what as Damage))
}
