import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isRoot } from '../helpers/stage.ts'
import { SIX_FILES } from '../helpers/tree.ts'
import { blocksOf, kubeletOptions, podsOf } from './example.ts'
import { ROOT } from './pages.ts'
import { play } from './play.ts'

const page = fs.readFileSync(join(ROOT, 'README.md'), 'utf8')
const title = `the README${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`
const VOLUME = '/var/lib/kubelet/pods/readme/volumes/modekeep~fs/data'
const DRIVER = '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/modekeep~fs/fs'

const hidden = (command: string) => ({ command, shown: undefined })
const byHand = (heading: string) =>
  blocksOf(page, 'sh')
    .filter((block) => block.heading === heading)
    .flatMap(({ text }) => text.trim().split('\n'))
    .map((line) => line.replace(/^sudo /, '').replace(/ +# .*$/, ''))

it("the README's table of the six files equals the tests' files with kubelet's changes", () => {
  const rows = [...page.matchAll(/^\| (test\d) \| (.*) \|$/gm)].map(([, name, cells = '']) => [
    name,
    ...cells.split(' | '),
  ])
  const expected = SIX_FILES.map((line) => {
    const [, name, mode = ''] = line.split(' ')
    const widened = (Number.parseInt(mode, 8) | 0o660).toString(8).padStart(4, '0')
    return [name, mode, widened, mode, mode]
  })
  expect(rows).toEqual(expected)
})

describe.skipIf(!isRoot)(title, () => {
  it('the commands in the README install modekeep, mount the example pod, and succeed as written', () => {
    const [configuration] = blocksOf(page, 'json')
    const [pod] = blocksOf(page, 'yaml').flatMap(({ text }) => podsOf(text))
    const [volume] = pod?.spec.volumes ?? []
    if (!configuration || !pod || !volume) throw new Error('the README has no configuration, or no pod')
    const options = JSON.stringify(kubeletOptions(pod, volume, {}))
    const commands = byHand('By hand')
    const verbs = ['plan', 'apply', 'journal', 'restore', 'status', 'heal', 'doctor', 'logs', 'support-bundle', 'gc']
    expect(commands.map((command) => command.split(' ')[1])).toEqual(verbs)
    const install = byHand('Install on one node')
    expect(install).toContain('./install.sh')

    const outputs = play([
      ...['kubelet', 'files data', ...install].map(hidden),
      hidden(`echo '${configuration.text.trim()}' > /etc/modekeep/config.json`),
      hidden(`mkdir -p ${VOLUME}; ${DRIVER} mount ${VOLUME} '${options}'`),
      hidden(`stat -c %g ${VOLUME} ${VOLUME}/secret`),
      hidden(`${DRIVER} unmount ${VOLUME}`),
      // What follows the log ends on Ctrl-C only.
      ...commands.map((command) => hidden(`${command.replace(' -f ', ' ')} >/tmp/out 2>&1 || cat /tmp/out`)),
    ])
    const [mounted = '', groups = '', unmounted = '', ...worked] = outputs.slice(install.length + 3)
    expect(JSON.parse(mounted)).toMatchObject({ status: 'Success' })
    expect(groups).toBe(`${pod.spec.securityContext?.fsGroup}\n`.repeat(2))
    expect(JSON.parse(unmounted)).toEqual({ status: 'Success' })
    expect(worked).toEqual(commands.map(() => ''))
  })
})
