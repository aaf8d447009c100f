// An installer in memory, killed in place of each of its effects.
import { describe, expect, it } from 'vitest'
import { parseOperatorCommand } from '../../../src/cli/commands/arguments.ts'
import { installModekeep, uninstallModekeep } from '../../../src/cli/install/index.ts'
import { memoryAdministration } from '../../memory-host/administration.ts'
import { Killed, MemoryWorld } from '../../memory-host/world.ts'

const PLUGINS = '/plugins'
const driverOf = (version: string) => `#!driver ${version} END`
const answer = (bytes: string) => (bytes.endsWith('END') ? '{"status":"Success"}' : 'cut short')

function worldWith(installed?: string): MemoryWorld {
  const world = new MemoryWorld()
  world.fs.mkdirSync(PLUGINS, { mode: 0o755 })
  for (const version of ['a', 'b']) world.fs.writeFileSync(`/driver-${version}`, driverOf(version))
  world.fs.writeFileSync('/wish.json', '{ "allow": [{ "sources": ["/srv/*"] }] }\n', { mode: 0o644 })
  world.fs.mkdirSync('/proc/self', { recursive: true })
  world.fs.writeFileSync('/proc/self/mountinfo', '1 0 0:1 / / rw - ext4 /dev/sda rw\n')
  if (installed !== undefined) {
    world.fs.mkdirSync(`${PLUGINS}/modekeep~fs`)
    world.fs.writeFileSync(`${PLUGINS}/modekeep~fs/fs`, driverOf(installed), { mode: 0o755 })
  }
  return world
}

async function run(world: MemoryWorld, argv: string[]): Promise<string[]> {
  const command = parseOperatorCommand([...argv, '--plugin-dir', PLUGINS], () => '/')
  const steps: string[] = []
  const job = {
    admin: memoryAdministration(world, answer),
    executable: undefined,
    report: (step: string) => steps.push(step),
    warn: (text: string) => steps.push(text),
    stop: new AbortController().signal,
  }
  if (command.verb === 'install') await installModekeep({ ...job, command })
  else if (command.verb === 'uninstall') await uninstallModekeep({ ...job, command })
  return steps
}

/** What kubelet would find. */
function found({ fs }: MemoryWorld): string {
  if (!fs.existsSync(`${PLUGINS}/modekeep~fs`)) return 'nothing'
  return fs.readFileSync(`${PLUGINS}/modekeep~fs/fs`, 'utf8') as string
}

/** Every name with its type and mode, and every content: all but times. */
const treeOf = (world: MemoryWorld) => {
  const names = (world.fs.readdirSync('/', { recursive: true }) as string[]).sort()
  return names.map((name) => {
    const stat = world.fs.lstatSync(`/${name}`)
    return [name, stat.mode, stat.isFile() ? world.fs.readFileSync(`/${name}`, 'utf8') : '']
  })
}

const INSTALL = ['install', '--binary', '/driver-b', '--config', '/wish.json']

describe.each([
  { title: 'a first install', before: undefined, argv: INSTALL, allowed: ['nothing', driverOf('b')], effects: 20 },
  { title: 'an upgrade', before: 'a', argv: INSTALL, allowed: [driverOf('a'), driverOf('b')], effects: 15 },
  { title: 'an uninstall', before: 'a', argv: ['uninstall'], allowed: [driverOf('a'), 'nothing'], effects: 4 },
  {
    title: 'an uninstall with --purge',
    before: 'a',
    argv: ['uninstall', '--purge'],
    allowed: [driverOf('a'), 'nothing'],
    effects: 5,
  },
])('$title that is killed', ({ before, argv, allowed, effects }) => {
  it('a killed install or uninstall leaves a complete driver or none, and the next run succeeds', async () => {
    const undisturbed = worldWith(before)
    await run(undisturbed, argv)
    const count = undisturbed.actions.length
    expect(count).toBeGreaterThanOrEqual(effects)
    const seen = new Set<string>()
    for (let at = 0; at < count; at++) {
      const world = worldWith(before)
      world.killAt = at
      await expect(run(world, argv)).rejects.toThrow(Killed)
      world.revive()
      seen.add(found(world))
      await run(world, argv)
      expect(treeOf(world), `killed in place of ${undisturbed.actions[at]}`).toEqual(treeOf(undisturbed))
    }
    expect([...seen].sort()).toEqual([...allowed].sort())
  })
})

it('an install of the installed version changes nothing', async () => {
  const world = worldWith()
  await run(world, INSTALL)
  const count = world.actions.length
  expect(await run(world, INSTALL)).toEqual(['plugin dir', 'unchanged', 'unchanged'])
  // The configuration is copied to be tried, and nothing else.
  expect(
    world.actions
      .slice(count)
      .filter((action) => !action.includes('config.json.new'))
      .map((action) => action.split(' ')[0]),
  ).toEqual(['writeFileSync'])
})

it('a driver whose init fails is not installed, and the message names the remedy', async () => {
  const world = worldWith()
  world.fs.writeFileSync('/driver-b', '#!driver b')
  await expect(run(world, INSTALL)).rejects.toThrow('/driver-b does not work here: init gave no JSON object')
  expect(world.fs.readdirSync(PLUGINS)).toEqual([])
})
