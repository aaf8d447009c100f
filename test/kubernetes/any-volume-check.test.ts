import { execFile, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { provideClients } from '../../scripts/fetch/clients.ts'
import { explainUnavailable } from '../helpers/unavailable.ts'
import { CLUSTER_RESOURCES, type ClusterObjects, formatObjects, type ResourceName } from './cluster-objects.ts'
import { startApiServer } from './fake-api-server.ts'
import { PLUGIN, RECORDING, SHELL_CASES } from './fake-kubectl.ts'

let top: string
beforeEach(() => {
  top = fs.mkdtempSync(join(tmpdir(), 'modekeep-plugin-'))
  fs.writeFileSync(join(top, 'kubectl'), RECORDING, { mode: 0o755 })
  fs.writeFileSync(join(top, 'namespace'), 'shop')
})
afterEach(() => fs.rmSync(top, { recursive: true }))

const environment = () => ({ PATH: `${top}:${process.env.PATH}`, TOP: top, TMPDIR: top, HOME: top })
const RESOURCES = Object.keys(CLUSTER_RESOURCES) as ResourceName[]

function serve(objects: ClusterObjects) {
  for (const name of RESOURCES) {
    if (objects[name]) fs.writeFileSync(join(top, `get.${name}`), formatObjects(name, objects))
    else failRead(name, `error: the server doesn't have a resource type "${name}"`)
  }
}

const failRead = (name: ResourceName, message: string) => fs.writeFileSync(join(top, `failure.${name}`), `${message}\n`)

const forbid = (name: ResourceName) =>
  failRead(name, `Error from server (Forbidden): ${name} is forbidden: User "jane" cannot list resource "${name}"`)

function check(args: string[] = [], shell: readonly string[] = []) {
  const [program = PLUGIN, ...words] = [...shell, PLUGIN, 'any-volume', 'check', ...args]
  return spawnSync(program, words, { encoding: 'utf8', env: environment(), timeout: 60_000, cwd: top })
}

function checkAsJson(args: string[] = []) {
  const { status, stdout, stderr } = check([...args, '--json'])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout.trim().split('\n')).toHaveLength(1)
  return JSON.parse(stdout)
}

const claim = (name: string, spec: object = {}, namespace = 'shop') => ({
  metadata: { name, namespace },
  spec: {
    volumeName: `pv-${name}`,
    storageClassName: 'fast',
    accessModes: ['ReadWriteOnce'],
    volumeMode: 'Filesystem',
    ...spec,
  },
})

const volume = (claimName: string, spec: object, annotations: Record<string, string> = {}) => ({
  metadata: { name: `pv-${claimName}`, annotations },
  spec: {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '1Gi' },
    claimRef: { namespace: 'shop', name: claimName },
    ...spec,
  },
})

const csi = (driver: string, fsType?: string) => ({ csi: { driver, volumeHandle: 'h', ...(fsType && { fsType }) } })

const driver = (name: string, fsGroupPolicy?: string) => ({
  metadata: { name },
  spec: fsGroupPolicy ? { fsGroupPolicy } : {},
})

const node = (name: string, kernelVersion: string, kubeletVersion = 'v1.35.0') => ({
  metadata: { name },
  status: { nodeInfo: { operatingSystem: 'linux', kernelVersion, kubeletVersion } },
})

const policies = (...labels: string[]) =>
  ['other', ...labels.map((label) => `modekeep-any-volume-${label}`)].map((name) => ({ metadata: { name } }))

/** Returns a cluster with one claim of namespace shop. */
const clusterWithClaim = (volumeSpec: object | undefined, claimSpec: object = {}): ClusterObjects => ({
  namespaces: [{ metadata: { name: 'shop' } }],
  persistentvolumeclaims: [claim('data', volumeSpec ? claimSpec : { volumeName: undefined, ...claimSpec })],
  persistentvolumes: volumeSpec ? [volume('data', volumeSpec)] : [],
  nodes: [node('node-1', '6.12.0-amd64')],
  storageclasses: [
    {
      metadata: { name: 'fast' },
      provisioner: 'disk.example.com',
      parameters: { 'csi.storage.k8s.io/fstype': 'xfs', 'a b': 'c' },
    },
    { metadata: { name: 'plain' }, provisioner: 'disk.example.com' },
    { metadata: { name: 'by-hand' }, provisioner: 'kubernetes.io/no-provisioner' },
    { metadata: { name: 'directories' }, provisioner: 'example.com/directories' },
  ],
  csidrivers: [
    driver('disk.example.com'),
    driver('file.example.com', 'File'),
    driver('none.example.com', 'None'),
    driver('nfs.csi.k8s.io', 'File'),
    driver('modekeep.csi', 'None'),
  ],
  mutatingadmissionpolicies: policies('required', 'optional'),
})

/** Returns a cluster with a claim of each kind. */
function createMixedCluster(): ClusterObjects {
  return {
    ...clusterWithClaim(undefined),
    namespaces: [
      { metadata: { name: 'shop', labels: { 'modekeep/any-volume': 'required' } } },
      { metadata: { name: 'other' } },
    ],
    persistentvolumeclaims: [
      claim('archive'),
      claim('database'),
      claim('pictures'),
      claim('raw', { volumeMode: 'Block' }),
      claim('scratch'),
      claim('waiting', { volumeName: undefined }),
      claim('elsewhere', {}, 'other'),
    ],
    persistentvolumes: [
      volume('archive', csi('file.example.com', 'ext4')),
      volume('database', csi('none.example.com', 'btrfs')),
      volume('pictures', { nfs: { server: 'nfs.example.com', path: '/' }, accessModes: ['ReadWriteMany'] }),
      volume('raw', { ...csi('disk.example.com'), volumeMode: 'Block' }),
      volume('scratch', { local: { path: '/srv', fsType: 'xfs' }, nodeAffinity: { required: {} } }),
    ],
    nodes: [node('node-1', '6.12.0-amd64'), node('node-2', '5.14.0-1.el9')],
  }
}

/** Returns the objects of createMixedCluster that the fake kubectl prints for namespace shop. */
function createServedCluster(): ClusterObjects {
  const cluster = createMixedCluster()
  return {
    ...cluster,
    namespaces: [{ metadata: { name: 'shop', labels: { 'modekeep/any-volume': 'required' } } }],
    persistentvolumeclaims: cluster.persistentvolumeclaims?.filter(({ metadata }) => metadata.namespace === 'shop'),
  }
}

const MIXED_REPORT = `NAMESPACE  LABEL     POLICIES
shop       required  required optional

CLAIM     DRIVER OR KIND    FILE SYSTEM  MAPPABLE  KUBELET WALKS
archive   file.example.com  ext4         yes       yes
database  none.example.com  btrfs        yes       no
pictures  nfs               nfs          no        no
raw       disk.example.com  Block        no        no
scratch   local             xfs          yes       yes
waiting   disk.example.com  xfs          yes       yes

DRIVER            FSGROUPPOLICY
file.example.com  File
none.example.com  None
disk.example.com  ReadWriteOnceWithFSType

node node-2: Linux 5.14.0-1.el9 cannot map btrfs: 5.15 can
  do: update its kernel, or keep pods that need the group off the node
claim pictures: Linux maps no NFS or SMB
  do: a pod with it needs the label optional, which starts it without the group
claim raw: a Block volume is a device without a group: neither modekeep nor kubelet changes it
claim scratch: kubelet walks volumes of kind local with an fsGroup, and no fsGroupPolicy turns that off
  do: write supplementalGroups and the annotation modekeep/group in the pods instead of fsGroup
claim waiting: no PersistentVolume yet: its StorageClass fast was judged
kubelet walks volumes of file.example.com with an fsGroup before modekeep maps them. With None it walks them in no namespace; the field can be changed since Kubernetes 1.29
  do: kubectl patch csidriver file.example.com --type merge -p '{"spec":{"fsGroupPolicy":"None"}}'
kubelet walks volumes of disk.example.com with an fsGroup before modekeep maps them. With None it walks them in no namespace; the field can be changed since Kubernetes 1.29
  do: kubectl patch csidriver disk.example.com --type merge -p '{"spec":{"fsGroupPolicy":"None"}}'
the label that fits is optional
  do: kubectl label namespace shop modekeep/any-volume=optional --overwrite
`

describe.each(SHELL_CASES)('kubectl modekeep any-volume check in $name', ({ name, command, missing }) => {
  it.skipIf(missing)(`prints a table of all claims, and the commands that fit${missing}`, () => {
    serve(createServedCluster())
    // With busybox' awk too.
    if (name === 'busybox') fs.writeFileSync(join(top, 'awk'), '#!/bin/sh\nexec busybox awk "$@"\n', { mode: 0o755 })
    const { status, stdout, stderr } = check([], command)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toBe(MIXED_REPORT)
    expect(fs.readdirSync(top).filter((entry) => /^(\d+$|kubectl-modekeep\.)/.test(entry))).toEqual([])
  })
})

const hasProgram = (name: string) => spawnSync('sh', ['-c', 'command -v "$1"', 'sh', name]).status === 0

describe.each(['mawk', 'gawk', 'original-awk'])('kubectl modekeep any-volume check with %s', (awk) => {
  const missing = hasProgram(awk) ? '' : ` (skipped: there is no ${awk})`
  it.skipIf(missing)(`prints a table of all claims, and the commands that fit${missing}`, () => {
    serve(createServedCluster())
    fs.writeFileSync(join(top, 'awk'), `#!/bin/sh\nexec ${awk} "$@"\n`, { mode: 0o755 })
    expect(check()).toMatchObject({ status: 0, stderr: '', stdout: MIXED_REPORT })
    expect(JSON.parse(check(['--json']).stdout)).toMatchObject({ kind: 'AnyVolumeCheck' })
  })
})

describe('kubectl modekeep any-volume check: a claim', () => {
  const RWOP = ['ReadWriteOncePod']
  const RWX = ['ReadWriteMany']
  it.each<[what: string, volumeSpec: object | undefined, claimSpec: object, judged: object]>([
    [
      'on ext4 of a driver with fsGroupPolicy File',
      { ...csi('file.example.com', 'ext4'), accessModes: RWX },
      {},
      { mappable: 'yes', kubeletWalks: 'yes', fsGroupPolicy: 'File', fsType: 'ext4', kind: 'csi' },
    ],
    [
      'that is ReadWriteOnce, of a driver with the default policy',
      csi('disk.example.com', 'ext4'),
      {},
      { mappable: 'yes', kubeletWalks: 'yes', fsGroupPolicy: 'ReadWriteOnceWithFSType' },
    ],
    [
      'that is ReadWriteMany and ReadWriteOnce, of a driver with the default policy',
      { ...csi('disk.example.com', 'xfs'), accessModes: [...RWX, 'ReadWriteOnce'] },
      {},
      { mappable: 'yes', kubeletWalks: 'yes' },
    ],
    [
      'that is ReadWriteMany, of a driver with the default policy',
      { ...csi('disk.example.com', 'xfs'), accessModes: RWX },
      {},
      { mappable: 'yes', kubeletWalks: 'no' },
    ],
    [
      'that is ReadWriteOncePod, with kubelet 1.35',
      { ...csi('disk.example.com', 'xfs'), accessModes: RWOP },
      {},
      { mappable: 'yes', kubeletWalks: 'yes' },
    ],
    ['without fsType', csi('disk.example.com'), {}, { mappable: 'unknown', kubeletWalks: 'no', fsType: null }],
    [
      'of a driver with fsGroupPolicy None',
      csi('none.example.com', 'btrfs'),
      {},
      { mappable: 'yes', kubeletWalks: 'no' },
    ],
    [
      'of a driver for NFS, whatever its fsType',
      { ...csi('nfs.csi.k8s.io', 'ext4'), accessModes: RWX },
      {},
      { mappable: 'no', kubeletWalks: 'yes', fsType: 'nfs', reason: 'Linux maps no NFS or SMB' },
    ],
    [
      'on a file system outside the default rules',
      csi('none.example.com', 'f2fs'),
      {},
      { mappable: 'no', reason: expect.stringContaining('"fsTypes"') },
    ],
    [
      'of a driver without a CSIDriver object',
      csi('lost.example.com', 'ext4'),
      {},
      { mappable: 'yes', kubeletWalks: 'yes', fsGroupPolicy: 'ReadWriteOnceWithFSType' },
    ],
    [
      'of modekeep',
      csi('modekeep.csi'),
      {},
      { mappable: 'no', kubeletWalks: 'no', reason: expect.stringContaining('ownership') },
    ],
    [
      'on NFS',
      { nfs: { server: 's', path: '/' } },
      {},
      { kind: 'nfs', mappable: 'no', kubeletWalks: 'no', fsType: 'nfs' },
    ],
    [
      'on a hostPath',
      { hostPath: { path: '/srv\tx\ny' } },
      {},
      { kind: 'hostPath', mappable: 'no', kubeletWalks: 'no', reason: expect.stringContaining('rule of "map"') },
    ],
    [
      'on a local directory',
      { local: { path: '/srv' } },
      {},
      { kind: 'local', mappable: 'unknown', kubeletWalks: 'yes' },
    ],
    [
      'on an in-tree block volume',
      { iscsi: { iqn: 'i', fsType: 'ext4' } },
      {},
      { kind: 'iscsi', mappable: 'no', kubeletWalks: 'yes', reason: expect.stringContaining('kubernetes.io/iscsi') },
    ],
    [
      'with volumeMode Block',
      { ...csi('file.example.com', 'ext4'), volumeMode: 'Block' },
      { volumeMode: 'Block' },
      { mappable: 'no', kubeletWalks: 'no', volumeMode: 'Block', fsGroupPolicy: 'File' },
    ],
    [
      'that is pending, by its StorageClass',
      undefined,
      {},
      { mappable: 'yes', kubeletWalks: 'yes', driver: 'disk.example.com', fsType: 'xfs', persistentVolume: null },
    ],
    [
      'that is pending, of a StorageClass without fsType',
      undefined,
      { storageClassName: 'plain' },
      { mappable: 'unknown', kubeletWalks: 'unknown' },
    ],
    [
      'that is pending, of a StorageClass without provisioner',
      undefined,
      { storageClassName: 'by-hand' },
      { mappable: 'unknown', kubeletWalks: 'unknown', driver: null, kind: 'unknown' },
    ],
    [
      'that is pending, of a provisioner that is no CSI driver',
      undefined,
      { storageClassName: 'directories' },
      { mappable: 'unknown', kubeletWalks: 'unknown', reason: expect.stringContaining('may be no CSI driver') },
    ],
  ])('%s is judged', (_what, volumeSpec, claimSpec, judged) => {
    serve(clusterWithClaim(volumeSpec, claimSpec))
    expect(checkAsJson()).toMatchObject({
      apiVersion: 'modekeep/v1',
      kind: 'AnyVolumeCheck',
      namespace: 'shop',
      claims: [{ claim: 'data', ...judged }],
    })
  })

  it('of an in-tree volume that is migrated to CSI is judged by the CSI driver', () => {
    const cluster = clusterWithClaim({})
    const spec = { awsElasticBlockStore: { volumeID: 'v', fsType: 'ext4' } }
    serve({
      ...cluster,
      persistentvolumes: [volume('data', spec, { 'pv.kubernetes.io/migrated-to': 'file.example.com' })],
    })
    expect(checkAsJson().claims).toMatchObject([
      { kind: 'csi', driver: 'file.example.com', mappable: 'yes', kubeletWalks: 'yes', fsGroupPolicy: 'File' },
    ])
  })

  it('that is bound to a PersistentVolume of another claim counts as pending', () => {
    const cluster = clusterWithClaim(csi('file.example.com', 'ext4'))
    serve({
      ...cluster,
      persistentvolumes: [
        volume('data', { ...csi('file.example.com', 'ext4'), claimRef: { namespace: 'other', name: 'data' } }),
      ],
    })
    expect(checkAsJson().claims).toMatchObject([{ persistentVolume: null, driver: 'disk.example.com' }])
  })

  it.each([
    ['v1.31.4', 'no'],
    ['v1.32.0', 'yes'],
  ])('that is ReadWriteOncePod with kubelet %s is walked: %s', (version, kubeletWalks) => {
    const cluster = clusterWithClaim({ ...csi('disk.example.com', 'xfs'), accessModes: RWOP })
    serve({ ...cluster, nodes: [node('node-1', '6.1.0', version)] })
    expect(checkAsJson().claims).toMatchObject([{ kubeletWalks }])
  })
})

describe('kubectl modekeep any-volume check', () => {
  const remedies = (document: { remarks: { remedy: string | null }[] }) => document.remarks.map(({ remedy }) => remedy)

  it('advises the label required if all claims can be mapped, and no label for a namespace that has it', () => {
    const cluster = clusterWithClaim(csi('none.example.com', 'ext4'))
    serve(cluster)
    expect(checkAsJson()).toMatchObject({
      label: null,
      policies: ['required', 'optional'],
      remarks: [],
      advisedLabel: 'required',
      command: 'kubectl label namespace shop modekeep/any-volume=required',
    })
    serve({ ...cluster, namespaces: [{ metadata: { name: 'shop', labels: { 'modekeep/any-volume': 'required' } } }] })
    expect(checkAsJson()).toMatchObject({ label: 'required', advisedLabel: 'required', command: null })
  })

  it('reports a namespace without claims', () => {
    serve({ ...clusterWithClaim(undefined), persistentvolumeclaims: [] })
    const { status, stdout } = check()
    expect(status).toBe(0)
    expect(stdout).toContain('namespace shop has no claims')
    expect(checkAsJson()).toMatchObject({ claims: [], advisedLabel: 'required' })
  })

  it('names five claims of a remark and counts the others', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    serve({
      ...clusterWithClaim(undefined),
      persistentvolumeclaims: names.map((name) => claim(name)),
      persistentvolumes: names.map((name) => volume(name, { nfs: { server: 's', path: '/' } })),
    })
    expect(checkAsJson().remarks).toMatchObject([{ text: 'claims a, b, c, d, e and 2 more: Linux maps no NFS or SMB' }])
  })

  it('offers the label instead-of-fsgroup if its policy is installed and kubelet walks a claim', () => {
    const cluster = clusterWithClaim(csi('file.example.com', 'ext4'))
    serve(cluster)
    expect(remedies(checkAsJson()).join()).not.toContain('instead-of-fsgroup')
    const labels = { 'modekeep/any-volume': 'instead-of-fsgroup' }
    const withPolicy = { ...cluster, mutatingadmissionpolicies: policies('required', 'instead-of-fsgroup') }
    serve(withPolicy)
    expect(remedies(checkAsJson())).toContain(
      'kubectl label namespace shop modekeep/any-volume=instead-of-fsgroup --overwrite',
    )
    serve({ ...withPolicy, namespaces: [{ metadata: { name: 'shop', labels } }] })
    expect(checkAsJson()).toMatchObject({ advisedLabel: 'instead-of-fsgroup', command: null, remarks: [] })
  })

  it.each<[what: string, change: Partial<ClusterObjects>, text: string]>([
    [
      'does not serve policies',
      { mutatingadmissionpolicies: undefined },
      'the API server has no MutatingAdmissionPolicy',
    ],
    [
      'has none of the policies',
      { mutatingadmissionpolicies: policies() },
      'no policy modekeep-any-volume-* is installed',
    ],
  ])('names the component any-volume if the API server %s', (_what, change, text) => {
    serve({ ...clusterWithClaim(csi('none.example.com', 'ext4')), ...change })
    expect(checkAsJson()).toMatchObject({
      policies: [],
      remarks: [
        { text: expect.stringContaining(text), remedy: expect.stringContaining('install the component any-volume') },
      ],
    })
  })

  it('reports a present label without a policy', () => {
    const namespaces = [{ metadata: { name: 'shop', labels: { 'modekeep/any-volume': 'requierd' } } }]
    serve({ ...clusterWithClaim(csi('none.example.com', 'ext4')), namespaces })
    expect(checkAsJson().remarks).toMatchObject([{ text: expect.stringContaining('label requierd has no effect') }])
  })

  it('reports nodes whose kernel is too old, and advises the label optional for them', () => {
    const cluster = clusterWithClaim(csi('none.example.com', 'ext4'))
    const old = ['5.4.0-193-generic', '5.11.22', '4.18.0-553.el8_10.x86_64']
    const nodes = [...old, '5.12.0', '6.1.0', '10.0.1'].map((version, at) => node(`node-${at}`, version))
    serve({ ...cluster, nodes })
    const document = checkAsJson()
    expect(document.oldNodes).toEqual(
      old.map((kernelVersion, at) => ({ node: `node-${at}`, kernelVersion, needs: '5.12' })),
    )
    expect(document.advisedLabel).toBe('optional')
  })

  it.each<[resource: ResourceName, claim: object, more: object]>([
    ['csidrivers', { fsGroupPolicy: null, kubeletWalks: 'unknown', mappable: 'yes' }, {}],
    [
      'persistentvolumes',
      { kind: 'unknown', driver: null, fsType: null, kubeletWalks: 'unknown', mappable: 'unknown' },
      { advisedLabel: 'optional' },
    ],
    ['storageclasses', { kubeletWalks: 'yes', mappable: 'yes' }, {}],
    ['nodes', { kubeletWalks: 'yes', mappable: 'yes' }, { oldNodes: [] }],
    ['mutatingadmissionpolicies', { mappable: 'yes' }, { policies: null }],
    ['namespaces', { mappable: 'yes' }, { label: null }],
  ])('without the right to read %s names the right, and reports the rest', (resource, claim, more) => {
    serve(clusterWithClaim(csi('file.example.com', 'ext4')))
    forbid(resource)
    const verb = resource === 'namespaces' ? 'get' : 'list'
    const document = checkAsJson()
    expect(document).toMatchObject({ claims: [claim], ...more })
    expect(document.remarks[0].text).toBe(
      `this user may not ${verb} ${resource}: the fields that depend on them are unknown`,
    )
    expect(document.remarks[0].remedy).toMatch(
      new RegExp(`^grant this user the verb ${verb} of the resource ${resource}`),
    )
  })

  it.each<[resource: ResourceName, message: string]>([
    ['namespaces', 'Error from server (NotFound): namespaces "shop" not found'],
    ['persistentvolumeclaims', 'Error from server (Forbidden): persistentvolumeclaims is forbidden'],
    ['csidrivers', 'Unable to connect to the server: net/http: \x1b[31mTLS handshake timeout'],
  ])('exits with 3 and the reason if %s cannot be read', (resource, message) => {
    serve(clusterWithClaim(csi('file.example.com', 'ext4')))
    failRead(resource, message)
    expect(check()).toMatchObject({
      status: 3,
      stdout: '',
      stderr: expect.stringMatching(
        new RegExp(
          `^kubectl modekeep: ${resource}\\S* cannot be read: ${RegExp.escape(message.replace('\x1b', ''))}\n$`,
        ),
      ),
    })
  })

  it('prints no control characters of any field, and takes no record from a field', () => {
    const hostile = 'ext4\x1b[31m\nclaim\tx\u009b\u202e"\\'
    const cluster = clusterWithClaim(csi('file.example.com', hostile), {})
    serve({ ...cluster, nodes: [node('node-1', `5.4${hostile}`)] })
    // Fields with Kubernetes' grammar, from an API server that does not check it.
    fs.appendFileSync(join(top, 'get.csidrivers'), "x\x1b[31m\u009b;'$(id)\tFile\n")
    fs.writeFileSync(join(top, 'get.namespaces'), 'required\x1b]0;title\x07\u202e\n')
    fs.appendFileSync(
      join(top, 'get.persistentvolumeclaims'),
      'evil\x1b[2J"\\\tpv-evil\tfast\tReadWriteOnce\tFilesystem\n',
    )
    fs.appendFileSync(
      join(top, 'get.persistentvolumes'),
      `pv-evil\tshop/evil\x1b[2J"\\\t\tReadWriteOnce \tcsi\t"x\x1b[31m\u009b;'$(id)"\t"ext4"\n`,
    )
    const { status, stdout } = check()
    expect(status).toBe(0)
    expect(stdout).not.toMatch(/[^\n -~]/)
    expect(stdout).not.toMatch(/patch csidriver x/)
    expect(stdout).toContain('ext4\\x1b[31m\\nclaim\\tx\\u009b\\u202e')
    const document = checkAsJson()
    expect(document.claims.map(({ claim }: { claim: string }) => claim)).toEqual(['data', 'evil[2J"\\'])
    expect(document.oldNodes).toHaveLength(1)
  })

  it('queries the given namespace, context and kubeconfig, and repeats these in the commands that it prints', () => {
    serve({ ...clusterWithClaim(csi('file.example.com', 'ext4')), persistentvolumeclaims: [] })
    const options = ['--context', "it's prod", '--kubeconfig=/k', '--timeout', '7']
    expect(checkAsJson(['depot', ...options]).command).toBe(
      "kubectl '--context=it'\\''s prod' --kubeconfig=/k label namespace depot modekeep/any-volume=required",
    )
    const calls = fs.readFileSync(join(top, 'calls'), 'utf8').trim().split('\n')
    expect(calls.filter((call) => !call.startsWith("--context=it's prod --kubeconfig=/k get "))).toEqual([])
    expect(calls.filter((call) => !call.includes(' --request-timeout=7s '))).toEqual([])
    expect(calls.filter((call) => call.includes('--namespace depot'))).toHaveLength(1)
  })

  it('takes the namespace of the context, or default', () => {
    serve({ ...clusterWithClaim(undefined), persistentvolumeclaims: [] })
    expect(checkAsJson().namespace).toBe('shop')
    fs.writeFileSync(join(top, 'namespace'), '')
    expect(checkAsJson().namespace).toBe('default')
    fs.rmSync(join(top, 'namespace'))
    expect(check()).toMatchObject({ status: 3, stderr: expect.stringContaining('write it after "check"') })
  })

  it.each([
    ['no command', ['any-volume'], 'any-volume has one command'],
    ['an unknown command', ['any-volume', 'chekc'], 'any-volume has one command'],
    ['two namespaces', ['any-volume', 'check', 'a', 'b'], 'check takes one namespace'],
    ['an unknown option', ['any-volume', 'check', '-n'], 'check has no option -n'],
    ['a node', ['any-volume', 'check', '--node', 'node-1'], '--node and --in are for'],
    ['no name of a namespace', ['any-volume', 'check', 'a/b\x1b'], '"a/b" is no name of a namespace'],
  ])('refuses %s with status 2, and reads nothing', (_what, args, message) => {
    expect(spawnSync(PLUGIN, args, { encoding: 'utf8', env: environment() })).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringContaining(message),
    })
    expect(fs.existsSync(join(top, 'calls'))).toBe(false)
  })
})

const noClients = explainUnavailable(provideClients)

describe.skipIf(noClients)(
  `kubectl modekeep any-volume check with a real kubectl${noClients && ` (${noClients})`}`,
  () => {
    async function checkWithRealKubectl(objects: ClusterObjects, args: string[]): Promise<string> {
      const { url, server } = await startApiServer(objects)
      try {
        const kubeconfig = join(top, 'kubeconfig')
        const config = {
          apiVersion: 'v1',
          kind: 'Config',
          clusters: [{ name: 'c', cluster: { server: url } }],
          users: [{ name: 'u', user: {} }],
          contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'shop' } }],
          'current-context': 'c',
        }
        fs.writeFileSync(kubeconfig, JSON.stringify(config))
        const env = {
          ...environment(),
          PATH: `${dirname(provideClients().kubectl)}:${process.env.PATH}`,
          KUBECONFIG: kubeconfig,
        }
        return (await promisify(execFile)(PLUGIN, ['any-volume', 'check', ...args], { env })).stdout
      } finally {
        server.close()
        server.closeAllConnections()
      }
    }

    it('prints the report of the recorded answers', async () => {
      expect(await checkWithRealKubectl(createMixedCluster(), [])).toBe(MIXED_REPORT)
    })

    it('prints the same JSON as with recorded answers for hostile fields and absent ones', async () => {
      const cluster: ClusterObjects = {
        ...clusterWithClaim(csi('file.example.com', 'ext4\x1b[31m\nclaim\tx\u009b\u202e"\\é')),
        mutatingadmissionpolicies: undefined,
      }
      serve(cluster)
      expect(JSON.parse(await checkWithRealKubectl(cluster, ['--json']))).toEqual(checkAsJson())
    })
  },
)
