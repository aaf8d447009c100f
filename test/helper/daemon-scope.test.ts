import { describe, expect, it } from 'vitest'
import { createLinuxHelperRunner } from '../../src/kernel/linux/helpers.ts'
import { FakePrograms, readFailureMessage } from './fake-programs.ts'

/** A helper that leaves a daemon and writes down each start of itself, where systemd runs. */
function node() {
  const programs = new FakePrograms()
  programs.add('serves', 'echo $$ >> $TOP/started; echo "$@" > $TOP/argv; [ "$1" != fail ]')
  const warnings: string[] = []
  programs.add('true', 'exit 0')
  const helpers = createLinuxHelperRunner([programs.top], () => true)
  const order = { program: 'serves', timeoutSeconds: 30, secrets: [], leavesDaemon: true }
  return {
    programs,
    warnings,
    run: (args: string[]) => helpers.run({ ...order, args, warn: (message) => warnings.push(message) }),
    starts: () => programs.read('started').trim().split('\n').length,
  }
}

const UNTIL_COMMAND = 'echo "$@" >> $TOP/scopes; while [ "$1" != -- ]; do shift; done; shift'

describe('a daemon on a node with systemd', () => {
  it('is started once, in a systemd scope', async () => {
    const { programs, warnings, run, starts } = node()
    programs.add('systemd-run', `${UNTIL_COMMAND}; exec "$@"`)
    await run(['a', 'b c'])
    expect([starts(), programs.read('argv'), warnings]).toEqual([1, 'a b c\n', []])
    const units = programs.read('scopes').match(/--unit=modekeep-fuse-\S+/g) ?? []
    // Each is tried with another program first.
    expect([units.length, new Set(units).size]).toEqual([2, 2])
  })

  it.each([
    ['fails', 'echo "Failed to connect to bus" >&2; exit 1', /exit status 1: Failed to connect to bus/],
    ['is no program', '', /systemd-run is not on this node/],
    ['starts the program and then fails', `${UNTIL_COMMAND}; "$@"; exit 3`, /exit status 3/],
  ])('is started once in its own session if systemd-run %s, with a warning', async (_how, body, why) => {
    const { programs, warnings, run, starts } = node()
    if (body !== '') programs.add('systemd-run', body)
    await run(['a'])
    expect([starts(), warnings]).toEqual([1, [expect.stringMatching(why)]])
    expect(warnings[0]).toContain('a restart of kubelet may end it')
  })

  it('is started once if systemd-run hangs', async () => {
    const { programs, warnings, run, starts } = node()
    programs.add('systemd-run', 'exec /bin/sleep 1000')
    await run(['a'])
    expect([starts(), warnings]).toEqual([1, [expect.stringContaining('did not end within 5 s')]])
  })

  it('is not started a second time if the daemon itself fails', async () => {
    const { programs, run, starts } = node()
    programs.add('systemd-run', `${UNTIL_COMMAND}; exec "$@"`)
    expect(await readFailureMessage(run(['fail']))).toBe('serves failed with exit status 1: it said nothing')
    expect(starts()).toBe(1)
  })

  it('is not started if systemd-run fails between its trial run and the start', async () => {
    const { programs, run } = node()
    programs.add('systemd-run', `${UNTIL_COMMAND}; [ "\${1##*/}" = true ] || exit 1`)
    expect(await readFailureMessage(run(['a']))).toBe('serves failed with exit status 1: it said nothing')
    expect(() => programs.read('started')).toThrow('ENOENT')
  })
})
