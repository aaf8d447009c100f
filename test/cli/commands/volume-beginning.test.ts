import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ApplyDocument } from '../../../src/cli/commands/apply.ts'
import { parseOperatorCommand } from '../../../src/cli/commands/arguments.ts'
import type { GcDocument } from '../../../src/cli/commands/gc.ts'
import { type NodeCommand, runVerb } from '../../../src/cli/commands/index.ts'
import type { JournalDocument } from '../../../src/cli/commands/journal-export.ts'
import type { RestoreDocument } from '../../../src/cli/commands/restore.ts'
import { onEveryStage, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree, SIX_FILES } from '../../helpers/tree.ts'

onEveryStage('a volume named by the beginning of its name', (open) => {
  let stage: Stage
  beforeEach(() => {
    stage = open()
  })
  afterEach(() => stage.close())

  /** As a user writes it whose working directory is the top. */
  const call = (...argv: string[]) =>
    runVerb(stage.session(), parseOperatorCommand(argv, () => stage.top) as Parameters<typeof runVerb>[1] & NodeCommand)

  const walked = async (name: string) => {
    const directory = `${stage.top}/volumes/${name}`
    makeTree(stage.fs, directory, SIX_FILES)
    const { volume } = (await call('apply', directory, '--fsgroup', '2000')) as ApplyDocument
    return { directory, volume }
  }
  /** The shortest beginning that no other has. */
  const short = (volume: string, other: string) => {
    const length = [...volume].findIndex((letter, at) => letter !== other[at])
    return volume.slice(0, length + 1)
  }

  it('restore finds a volume by the beginning of its name', async () => {
    const [one, other] = [await walked('one'), await walked('other')]
    const word = short(one.volume, other.volume)
    expect(word.length).toBeLessThan(one.volume.length)
    const done = (await call('restore', word)) as RestoreDocument
    expect(done).toMatchObject({ outcome: 'restored', ...one })
    expect(stage.noted).toMatchObject({ volume: one.volume })
    const left = new Set(Object.values(groups(listTree(stage.fs, other.directory))))
    expect(left).toEqual(new Set([2000]))
  })

  it('journal export and gc --forget find a volume by the beginning of its name', async () => {
    const [one, other] = [await walked('one'), await walked('other')]
    const word = short(one.volume, other.volume)
    const exported = (await call('journal', 'export', word, '--output', `${stage.top}/file`)) as JournalDocument
    expect(exported).toMatchObject({ outcome: 'exported', volume: one.volume })
    stage.fs.rmSync(one.directory, { recursive: true })
    const { items } = (await call('gc', '--forget', word)) as GcDocument
    expect(items).toContainEqual(expect.objectContaining({ kind: 'volume', name: one.volume, action: 'removed' }))
  })

  it('the beginning of several volume names is refused, and the message names each of these volumes', async () => {
    const [one, other] = [await walked('one'), await walked('other')]
    const word = short(one.volume, other.volume).slice(0, -1)
    const both = new RegExp(
      `"${word}" is the beginning of 2 volumes: write more of the name of .*(${one.volume} \\(${one.directory}\\)|${other.volume} \\(${other.directory}\\)), `,
    )
    await expect(call('restore', word)).rejects.toThrow(both)
    await expect(call('journal', 'export', word, '--output', `${stage.top}/file`)).rejects.toThrow(both)
    await expect(call('gc', '--forget', word)).rejects.toThrow(both)
    const left = new Set([one, other].flatMap(({ directory }) => Object.values(groups(listTree(stage.fs, directory)))))
    expect(left).toEqual(new Set([2000]))
  })

  it('the beginning of a volume name that is also a directory is refused, and the message has both unambiguous forms', async () => {
    const { volume } = await walked('one')
    const word = volume.slice(0, volume.indexOf('-') + 1)
    makeTree(stage.fs, `${stage.top}/${word}`, SIX_FILES)
    await expect(call('restore', word)).rejects.toThrow(
      `"${word}" is a directory here, and the beginning of a volume's name: write "./${word}", or the whole name`,
    )
    expect(await call('restore', `./${word}`)).toMatchObject({ directory: `${stage.top}/${word}` })
    expect(await call('restore', volume)).toMatchObject({ outcome: 'restored', volume })
  })

  it('an operand that is not the beginning of a volume name is taken for a directory', async () => {
    makeTree(stage.fs, `${stage.top}/fade`, SIX_FILES)
    expect(await call('restore', 'fade')).toMatchObject({ directory: `${stage.top}/fade` })
    await expect(call('restore', 'facade')).rejects.toThrow(`directory "${stage.top}/facade" does not exist`)
    await expect(call('gc', '--forget', 'facade')).rejects.toThrow('nothing is recorded of volume facade')
  })
})
