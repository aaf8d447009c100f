import { describe, expect, it } from 'vitest'
import type { ListedSandbox } from '../../../src/frontends/nri/cri.ts'
import { findSkippedSandbox } from '../../../src/frontends/nri/registration-check.ts'

const PERIOD = { since: 1_000_000, before: 1_005_000 }
const SENT = new Set(['sent'])

const sandbox = (id: string, createdAtMs: number, isReady = true): ListedSandbox => ({ id, isReady, createdAtMs })
const sent = sandbox('sent', 0)
const skipped = sandbox('skipped', 1_002_000)

describe('a sandbox in the list of a container runtime', () => {
  it.each<[string, ListedSandbox[][], string | undefined]>([
    ['is skipped if the runtime created it during the connection and did not send it', [[sent, skipped]], 'skipped'],
    ['is skipped also if the only runtime has removed all sandboxes that it sent', [[skipped]], 'skipped'],
    ['is not skipped if it is older than the connection', [[sent, sandbox('old', 999_999)]], undefined],
    ['is not skipped while the call about it may be on its way', [[sent, sandbox('new', 1_006_000)]], undefined],
    ['is not skipped if it failed to start', [[sent, sandbox('failed', 1_002_000, false)]], undefined],
    ['is not skipped if it belongs to another runtime', [[sent], [skipped]], undefined],
  ])('%s', (_title, runtimes, id) => {
    expect(findSkippedSandbox(runtimes, SENT, PERIOD)).toBe(id)
  })

  it('is skipped on any runtime if the plugin received no sandbox', () => {
    expect(findSkippedSandbox([[], [skipped]], new Set(), PERIOD)).toBe('skipped')
  })
})
