import { expect, it } from 'vitest'
import {
  decidePodFate,
  isApiServerUid,
  type KubeletPodSnapshot,
  mayPodBeGone,
  type PodTrace,
} from '../../src/repair/kubelets.ts'

const UID = '11111111-1111-4111-8111-111111111111'
const OTHER = '22222222-2222-4222-8222-222222222222'
const TRACE: PodTrace = { uid: UID, pod: 'default/web-0', born: 1000, kubeletSince: 2000, hasLogs: false }

it("a pod counts as possibly deleted if it is older than kubelet's start and has no logs", () => {
  expect(mayPodBeGone(TRACE)).toBe(true)
})

it.each<[why: string, Partial<PodTrace>]>([
  ['this kubelet has seen it, and unmounts it itself', { born: 3000 }],
  ['it was created at the moment when kubelet started', { born: 2000 }],
  ['it has logs, which kubelet removes once it knows all its pods', { hasLogs: true }],
  ['no kubelet can be queried', { kubeletSince: undefined }],
  ['its directory does not exist, which another check reports', { born: undefined }],
  ['kubelet did not pass its name', { pod: undefined }],
  ['it is a static pod, whose uid returns with its file', { uid: '0123456789abcdef0123456789abcdef' }],
])('a pod does not count as deleted if %s', (_, more) => {
  expect(mayPodBeGone({ ...TRACE, ...more })).toBe(false)
})

it('uids of the API server are distinguished from hashes of manifest files', () => {
  expect([UID, 'a'.repeat(32), '', 'pod', OTHER.replaceAll('2', 'G')].map(isApiServerUid)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ])
})

/** Kubelet lists another pod of the API server, which runs. */
const ANSWER: KubeletPodSnapshot = {
  pods: new Set(['kube-system/proxy']),
  logs: [{ pod: 'kube-system/proxy', uid: OTHER, born: 500 }],
  running: new Set([OTHER]),
}

it('a pod that kubelet does not list counts as deleted if kubelet lists other pods of the API server', () => {
  expect(decidePodFate(TRACE, ANSWER)).toBe('gone')
})

it('a pod counts as living while a process of it runs, whatever kubelet lists', () => {
  expect(decidePodFate(TRACE, { ...ANSWER, running: new Set([OTHER, UID]) })).toBe('living')
})

it.each<[why: string, Partial<KubeletPodSnapshot>]>([
  ['lists nothing', { pods: new Set() }],
  ['lists only a static pod', { logs: [{ pod: 'kube-system/proxy', uid: 'a'.repeat(32), born: 500 }] }],
  ['lists pods without a process', { running: new Set() }],
  ['has its logs in another directory', { logs: [] }],
])("a pod's fate is unknown while kubelet %s", (_, more) => {
  expect(decidePodFate(TRACE, { ...ANSWER, ...more })).toMatchObject({
    unknownReason: expect.stringContaining('API server'),
  })
})

it("a pod's fate is unknown while kubelet lists its name, unless a later pod has that name", () => {
  const pods = new Set([...ANSWER.pods, 'default/web-0'])
  const successor = (born: number, isRunning: boolean): KubeletPodSnapshot => ({
    pods,
    logs: [...ANSWER.logs, { pod: 'default/web-0', uid: OTHER.replace('2', '3'), born }],
    running: new Set([...ANSWER.running, ...(isRunning ? [OTHER.replace('2', '3')] : [])]),
  })
  expect(decidePodFate(TRACE, { ...ANSWER, pods })).toEqual({ unknownReason: 'kubelet lists a pod default/web-0' })
  expect(decidePodFate(TRACE, successor(1500, true))).toBe('gone')
  // What an earlier pod of the name has left, and what does not run.
  expect(decidePodFate(TRACE, successor(900, true))).toMatchObject({ unknownReason: expect.anything() })
  expect(decidePodFate(TRACE, successor(1500, false))).toMatchObject({ unknownReason: expect.anything() })
})
