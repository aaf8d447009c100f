import { expect, it } from 'vitest'
import { checkContainerMountOptions } from '../../../src/cli/doctor/node.ts'
import { DEFAULT_CONFIG } from '../../../src/config/defaults.ts'
import { tryAcquireNodeLock } from '../../../src/state/locks.ts'
import { nriPluginRecord } from '../../../src/state/process-records.ts'
import { memoryStage } from '../../helpers/stage.ts'

async function findings(isRegistered?: boolean) {
  const { host } = memoryStage()
  const session = { host, config: DEFAULT_CONFIG, note: () => {}, warn: () => {} }
  const record = { runtime: 'containerd v2.1.9', since: 0, socket: '/var/run/nri/nri.sock' }
  if (isRegistered !== undefined) nriPluginRecord.write(session, { ...record, isRegistered })
  using _ = isRegistered === undefined ? undefined : tryAcquireNodeLock(session, 'nri')
  return Array.fromAsync(checkContainerMountOptions(session))
}

it('doctor reports that containers keep mount options if the plugin is registered with the runtime', async () => {
  expect(await findings(true)).toMatchObject([
    { level: 'ok', text: expect.stringMatching(/hold in containers.*containerd v2.1.9/) },
  ])
})

it('doctor reports the options that older and current runc clear if no plugin is registered', async () => {
  for (const isRegistered of [undefined, false]) {
    expect(await findings(isRegistered)).toMatchObject([
      {
        level: 'ok',
        text: expect.stringMatching(/clears nosuid, nodev and noexec .* runc 1.2 or newer.*no mount on this node/),
      },
    ])
  }
})
