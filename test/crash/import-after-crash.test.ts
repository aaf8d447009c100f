import { expect, it } from 'vitest'
import { runVerb } from '../../src/cli/commands/index.ts'
import { listVolumesInImport, listVolumesWithRecords } from '../../src/state/record-directories.ts'
import type { Session } from '../../src/state/session.ts'
import { hasVolumeJournal } from '../../src/state/volume-journal.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'
import { Killed } from '../memory-host/world.ts'

const TREE = [...SIX_FILES, 'dir sub 0750 7', 'file sub/suid 4755', 'file sub/right 0600 2000']
const FS_GROUP = { groupId: 2000, access: 'keep', changePolicy: 'Always' } as const

interface Arranged {
  stage: Stage
  directory: string
  file: string
  /** The node that imports. */
  there: Session
  original: object
}

async function arrange(): Promise<Arranged> {
  const stage = memoryStage()
  const directory = `${stage.top}/volumes/data`
  const file = `${stage.top}/data.journal`
  makeTree(stage.fs, directory, TREE)
  const original = found(stage, directory)
  const here = stage.session()
  await runVerb(here, { verb: 'apply', directory, fsGroup: FS_GROUP })
  const [volume = ''] = listVolumesWithRecords(here)
  const record = volumeRecords.read(here, volume)
  if (record) volumeRecords.write(here, { ...record, restorePending: true })
  await runVerb(here, { verb: 'journal', action: 'export', target: { directory }, file, isForced: false })
  const there = { ...here, config: { ...stage.config, stateDir: `${stage.top}/state-b` } }
  return { stage, directory, file, there, original }
}

function found({ fs }: Stage, directory: string): object {
  const listed = listTree(fs, directory)
  return { modes: modes(listed), groups: groups(listed) }
}

const importing = ({ there, file }: Arranged) =>
  runVerb(there, { verb: 'journal', action: 'import', file, at: undefined, isDry: false })

/** Lets an import die in place of each of its effects in turn, and then looks; returns in how many places. */
async function killEverywhere(after: (arranged: Arranged, died: boolean) => Promise<void>): Promise<number> {
  for (let n = 0; ; n++) {
    const arranged = await arrange()
    const { world } = arranged.stage
    if (world) world.killAt = n
    const died = await importing(arranged).then(
      () => false,
      (error) => {
        if (error instanceof Killed) return true
        throw error
      },
    )
    world?.revive()
    await after(arranged, died)
    if (!died) return n
  }
}

/** @returns whether all of it is there; what is not, leaves nothing */
function isImported({ there }: Arranged): boolean {
  const [volume] = listVolumesWithRecords(there)
  if (volume === undefined) return false
  const record = volumeRecords.read(there, volume)
  const isThere = { journal: hasVolumeJournal(there, volume), pending: record?.restorePending ?? false }
  // The place with its lock, which the import made to have the volume, is nothing that is recorded.
  if (!isThere.journal && record === undefined) return false
  expect(isThere).toEqual({ journal: true, pending: true })
  return true
}

it("after a crash at any step of a journal's import, the volume has all of the journal or nothing", async () => {
  const seen = new Set<boolean>()
  const points = await killEverywhere(async (arranged, died) => {
    const isThere = isImported(arranged)
    seen.add(isThere)
    if (!died) expect(isThere).toBe(true)
    const { there, directory, stage, original } = arranged
    const target = { directory }
    const restored = await runVerb(there, { verb: 'restore', target, isDry: false, isForced: false })
    expect(restored).toMatchObject({ outcome: isThere ? 'restored' : 'nothing recorded' })
    if (isThere) expect(found(stage, directory)).toEqual(original)
  })
  expect(points).toBeGreaterThan(10)
  expect([...seen].sort()).toEqual([false, true])
})

it("after a crash at any step of a journal's import, the next import succeeds and leaves no other file", async () => {
  await killEverywhere(async (arranged) => {
    expect(await importing(arranged)).toMatchObject({ outcome: expect.stringMatching(/^(imported|already here)$/) })
    const { there, directory, stage, original } = arranged
    expect(listVolumesInImport(there)).toEqual([])
    await runVerb(there, { verb: 'restore', target: { directory }, isDry: false, isForced: false })
    expect(found(stage, directory)).toEqual(original)
    expect(stage.fs.readdirSync(there.config.stateDir)).toEqual(['growth', 'reservations', 'reservations.lock'])
    expect(stage.fs.readdirSync(`${there.config.stateDir}/reservations`)).toEqual([])
  })
})

it("after a crash at any step of a journal's import, gc removes the partial import, and a mount succeeds", async () => {
  await killEverywhere(async (arranged) => {
    const { there, directory, stage } = arranged
    const isThere = isImported(arranged)
    await runVerb(there, { verb: 'gc', isDry: false, forget: undefined })
    expect(listVolumesInImport(there)).toEqual([])
    expect(listVolumesWithRecords(there)).toHaveLength(isThere ? 1 : 0)
    await runVerb(there, { verb: 'apply', directory, fsGroup: FS_GROUP })
    expect(new Set(Object.values(groups(listTree(stage.fs, directory))))).toEqual(new Set([2000]))
  })
})

it("after a crash at any step of a journal's export, the exported file is complete or missing, and no other file is changed", async () => {
  for (let n = 0; ; n++) {
    const { stage, directory, file } = await arrange()
    const whole = stage.fs.readFileSync(file)
    stage.fs.rmSync(file)
    const before = Object.keys(listTree(stage.fs, stage.config.stateDir))
    if (stage.world) stage.world.killAt = n
    const command = { verb: 'journal', action: 'export', target: { directory }, file, isForced: false } as const
    const died = await runVerb(stage.session(), command).then(
      () => false,
      (error) => {
        if (error instanceof Killed) return true
        throw error
      },
    )
    stage.world?.revive()
    // An empty file has its name for a moment, and cannot be imported.
    const there = stage.fs.existsSync(file) ? stage.fs.readFileSync(file).length : 0
    expect([0, whole.length]).toContain(there)
    expect(Object.keys(listTree(stage.fs, stage.config.stateDir))).toEqual(before)
    if (died) continue
    expect(n).toBeGreaterThan(3)
    return
  }
})
