import { describe, expect, it } from 'vitest'
import { parseOperatorCommand } from '../../src/cli/commands/arguments.ts'
import { isRoot } from '../helpers/stage.ts'
import { blocksOf } from './example.ts'
import { PAGES } from './pages.ts'
import { play } from './play.ts'

interface Typed {
  page: string
  heading: string
  command: string
}

/** What the pages have people type, beside the sessions of a console, which the page of operations has played. */
const TYPED: readonly Typed[] = PAGES.flatMap(({ path, text }) =>
  blocksOf(text, 'sh').flatMap(({ heading, text: block }) =>
    block
      .split('\n')
      .map((line) => line.replace(/(^|\s+)#.*$/, '').trim())
      .filter((command) => command !== '')
      .map((command) => ({ page: path, heading, command })),
  ),
)

/** Run here, below. */
const RUN: readonly RegExp[] = [
  /^source <\(modekeep completion bash\)$/,
  /^modekeep help --man \|/,
  /^modekeep support-bundle/,
  /^modekeep status --prometheus/,
  /^modekeep migrate volumes\.yaml/,
  /^modekeep plan \/srv\/volumes\/data --fsgroup 2000 --group-access grant$/,
]

/** Run elsewhere, or not run by any test, and why. */
const NOT_RUN: readonly (readonly [command: RegExp, why: string, page?: string])[] = [
  [/^sudo \.\/install\.sh/, 'test/docs/readme.test.ts runs them', 'README.md'],
  [/^modekeep /, 'test/docs/readme.test.ts runs them', 'README.md'],
  [
    /^([A-Z_]+=\S+ )*((sudo )?npm |node_modules\/)/,
    'take minutes to hours, or are the tests themselves; test/docs/pages.test.ts looks for their names',
  ],
  [
    /\bkubectl |^helm install /,
    'need a cluster: npm run test:cluster applies the manifests and installs the chart, test/kubernetes runs the plugin of kubectl',
  ],
  [/^skopeo copy /, 'needs a registry; test/release/chart.test.ts copies the chart to a directory'],
  [/^modekeep status \S/, 'name a pod and volumes that a reader has; test/cli/commands/status.test.ts selects such'],
  [/^modekeep nri/, 'needs a container runtime with NRI: npm run test:nri'],
  [
    /^modekeep journal export VOLUME \| ssh/,
    'needs another machine; test/binary/journal.test.ts moves a journal',
    'docs/operations.md',
  ],
  [/^chmod 0666 \/dev\/fuse$|udev|tmpfiles\.d/, 'change the devices of the machine', 'docs/fuse-in-pods.md'],
  [/apparmor/, 'need a kernel with AppArmor', 'docs/fuse-in-pods.md'],
  [/^jq /, 'needs jq, which is not needed to read the log', 'docs/troubleshooting.md'],
  [/./, 'need a release: test/release makes one, and checks its sums and its signature', 'docs/release.md'],
]

const isRun = ({ command }: Typed) => RUN.some((pattern) => pattern.test(command))
const reasonOf = ({ page, command }: Typed) =>
  NOT_RUN.find(([pattern, , where]) => pattern.test(command) && (where === undefined || where === page))?.[1]

describe('a command in a page', () => {
  it('is run by a test, or a reason is given', () => {
    expect(TYPED.length).toBeGreaterThan(40)
    expect(TYPED.filter((typed) => !isRun(typed) && reasonOf(typed) === undefined)).toEqual([])
  })

  it('that is listed as run or skipped is still in a page', () => {
    expect(RUN.filter((pattern) => !TYPED.some(({ command }) => pattern.test(command)))).toEqual([])
    expect(NOT_RUN.filter(([pattern]) => !TYPED.some(({ command }) => pattern.test(command)))).toEqual([])
  })

  it.each(
    TYPED.flatMap(({ page, command }) =>
      [...command.matchAll(/(?:^|[|(] ?)(?:sudo )?modekeep ([^|)>]+)/g)].map(
        ([, words = '']) => [page, words.trim()] as const,
      ),
    ),
  )('of modekeep has valid arguments: %s: modekeep %s', (_page, words) => {
    expect(() => parseOperatorCommand(words.split(/ +/), () => '/')).not.toThrow()
  })
})

const title = `the commands of the pages${isRoot ? '' : ' (skipped: they need root; run "sudo npm test")'}`

it.skipIf(!isRoot)(`${title} run as written, without an error`, () => {
  const hidden = (command: string) => ({ command, shown: undefined })
  const commands = [...new Set(TYPED.filter(isRun).map(({ command }) => command.replaceAll('sudo ', '')))]
  const volume =
    '{"name":"data","flexVolume":{"driver":"fstab/cifs","options":{"networkPath":"//server/share","mountOptions":"guest"}}}'
  const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[],"volumes":[${volume}]}}`
  const staged = [
    'kubelet',
    'files data',
    './install.sh >/dev/null',
    'mkdir -p /var/lib/node_exporter',
    'cd /tmp',
    `echo '${pod}' > volumes.yaml`,
  ]
  const outputs = play([
    ...staged.map(hidden),
    ...commands.map((command) => hidden(`{ ${command}\n} >/tmp/out 2>&1 || { echo failed; cat /tmp/out; }`)),
    hidden('wc -l < /usr/local/share/man/man8/modekeep.8'),
    hidden('grep -c modekeep_info /var/lib/node_exporter/modekeep.prom'),
    hidden('grep -c modekeep/fs new-volumes.yaml'),
  ])
  const made = outputs.slice(staged.length + commands.length)
  expect(outputs.slice(staged.length, -made.length)).toEqual(commands.map(() => ''))
  expect(made.map(Number).every((lines) => lines > 0)).toBe(true)
})
