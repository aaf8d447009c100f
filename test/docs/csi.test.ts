import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { checkRequestAgainstRules } from '../../src/config/allow.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createMountRequest } from '../../src/config/request.ts'
import { parsePublishRequest } from '../../src/frontends/csi/publish-request.ts'
import { CSI_WORKER_LIMITS } from '../../src/frontends/csi/worker-tasks.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { blocksOf } from './example.ts'

interface Source {
  driver: string
  fsType?: string
  volumeAttributes: Record<string, string>
}

const page = fs.readFileSync(resolve(import.meta.dirname, '../../docs/csi.md'), 'utf8')
const objects = blocksOf(page, 'yaml').flatMap(({ text }) => parseAllDocuments(text).map((one) => one.toJS()))
const of = (kind: string) => objects.find((one) => one.kind === kind) ?? expect.unreachable()
const { config, faults } = parseConfig(blocksOf(page, 'json')[0]?.text ?? '', 'the page')

const UID = '8c03f2a2-6d7e-4b5a-9f58-0c6a3c1f7b11'

/** As kubelet calls for it. */
function asked({ fsType = '', volumeAttributes }: Source, ephemeral: boolean, mountFlags: string[], group: string) {
  const { directory, options, secrets, lifecycle } = parsePublishRequest({
    volumeId: 'v',
    targetPath: `/var/lib/kubelet/pods/${UID}/volumes/kubernetes.io~csi/data/mount`,
    volumeCapability: {
      block: undefined,
      mount: { fsType, mountFlags, volumeMountGroup: group },
      accessMode: { mode: ephemeral ? 1 : 5 },
    },
    readonly: false,
    secrets: {},
    volumeContext: {
      ...volumeAttributes,
      'csi.storage.k8s.io/pod.name': 'pod',
      'csi.storage.k8s.io/pod.namespace': 'shop',
      'csi.storage.k8s.io/pod.uid': UID,
      'csi.storage.k8s.io/serviceAccount.name': 'default',
      'csi.storage.k8s.io/ephemeral': String(ephemeral),
    },
  })
  const given = { entries: Object.entries(options), secretKeys: Object.keys(secrets) }
  return { ...createMountRequest(directory, given, config, volumeKindLookup), lifecycle }
}

describe('docs/csi.md', () => {
  it('has the CSIDriver object that the server needs', () => {
    expect(of('CSIDriver')).toMatchObject({
      metadata: { name: 'modekeep.csi' },
      spec: {
        attachRequired: false,
        podInfoOnMount: true,
        fsGroupPolicy: 'None',
        requiresRepublish: true,
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      },
    })
  })

  it("has volumes that a node with the page's configuration mounts", () => {
    expect(faults).toEqual([])
    const pod = of('Pod')
    const [inline] = pod.spec.volumes
    const { csi, mountOptions, claimRef } = of('PersistentVolume').spec
    expect([inline.csi.driver, csi.driver, pod.metadata.namespace, claimRef.namespace]).toEqual([
      'modekeep.csi',
      'modekeep.csi',
      'shop',
      'shop',
    ])
    const requests = [
      asked(inline.csi, true, [], String(pod.spec.securityContext.fsGroup)),
      asked(csi, false, mountOptions, '2000'),
    ]
    expect(requests).toMatchObject([
      { lifecycle: 'inline', ownership: 'walk', fsGroup: { groupId: 2000 } },
      { lifecycle: 'persistent', ownership: 'auto', mountOptions: ['noatime'] },
    ])
    for (const request of requests) {
      expect(
        checkRequestAgainstRules(config.allow, request, {
          walksServer: false,
          hasNoSource: false,
          naming: () => 'none',
        }),
      ).toHaveProperty('rule')
    }
  })

  it('has the current limits', () => {
    expect(CSI_WORKER_LIMITS).toEqual({
      maxQuick: 4,
      longAfterMs: 5000,
      maxPerKind: 16,
      maxPerNamespace: 8,
      minIdle: 0,
      startedAhead: 1,
      growAfterMs: 300,
    })
    expect(page).toMatch(/At most four jobs run at a time; a job of more than 5 s .* does not count/)
    expect(page).toMatch(
      /At most 16 publications,\n16 unpublications and 16 statistics run at a time, and 8 publications of one namespace/,
    )
  })
})
