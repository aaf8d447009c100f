import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { expect, it } from 'vitest'
import { BINARY, NodeDirectory } from '../../helpers/node-directory.ts'

it.each(['attach', 'grant'])('a worker of the NRI plugin refuses the task %s while a rule has a fault', (task) => {
  const node = new NodeDirectory()
  const config = JSON.parse(fs.readFileSync(`${node.top}/config.json`, 'utf8'))
  fs.writeFileSync(`${node.top}/config.json`, JSON.stringify({ ...config, map: [{ namespace: ['shop'] }] }))
  const request = {
    container: 'c'.repeat(64),
    containerName: 'app',
    sandbox: 's',
    pod: { namespace: 'shop', name: 'web-0', uid: 'u' },
    hasUserNamespace: false,
    kubeletDir: node.top,
    clones: [],
    isOptional: false,
  }
  const { stdout } = spawnSync(BINARY, ['nri-worker'], {
    input: `${JSON.stringify({ do: task, request })}\n`,
    env: { MODEKEEP_CONFIG: `${node.top}/config.json` },
    encoding: 'utf8',
  })
  fs.rmSync(node.top, { recursive: true })
  expect(stdout).toContain('config-invalid')
})
