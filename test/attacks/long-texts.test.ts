import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { isRoot } from '../helpers/stage.ts'

const skipReason = !isRoot
  ? 'mounts need root; run "sudo npm test"'
  : !fs.existsSync(BINARY)
    ? 'run "npm run build"'
    : ''

const LONGEST_LINE = 4096

describe.skipIf(skipReason !== '')(
  `a pod's author who writes long texts${skipReason && ` (skipped: ${skipReason})`}`,
  () => {
    it.each<[string, (volumes: string) => Record<string, string>]>([
      ['a source that does not exist', (volumes) => ({ source: `${volumes}${'/directory'.repeat(390)}` })],
      ['a source that no kernel accepts', (volumes) => ({ source: `${volumes}${'/directory'.repeat(4000)}` })],
      ['a source with control characters', (volumes) => ({ source: `${volumes}/${'\x1b\u202e'.repeat(9000)}` })],
      ['a subPath', (volumes) => ({ source: volumes, subPath: '../'.repeat(12_000) })],
      ['options', (volumes) => ({ source: volumes, mountOptions: `${'noatime,nodiratime,sync,x,'.repeat(1500)}y` })],
      [
        'keys',
        (volumes) => ({
          source: volumes,
          ...Object.fromEntries(
            Array(2000)
              .keys()
              .map((n) => [`key${n}`, 'x']),
          ),
        }),
      ],
      ['the name of a pod', (volumes) => ({ source: `${volumes}/none`, 'kubernetes.io/pod.name': 'p'.repeat(40_000) })],
    ])('fills neither the log nor the event: %s', async (_what, optionsIn) => {
      const node = new BinaryNode()
      const options = JSON.stringify(optionsIn(node.volumes))
      const { status, message = '' } = await node.call('mount', node.podDirectory('a'), options)
      expect(status).toBe('Failure')
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024)
      const lines = fs.readFileSync(node.log, 'utf8').split('\n').filter(Boolean)
      expect(lines.length).toBeLessThanOrEqual(2)
      for (const line of lines) expect(Buffer.byteLength(`${line}\n`)).toBeLessThanOrEqual(LONGEST_LINE)
      // What it is about is still to be found.
      expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ verb: 'mount', directory: node.podDirectory('a') })
      const logs = execFileSync(BINARY, ['logs'], {
        env: { MODEKEEP_CONFIG: `${node.top}/config.json` },
        encoding: 'utf8',
      })
      expect(logs.length).toBeLessThan(2 * LONGEST_LINE)
    })
  },
)
