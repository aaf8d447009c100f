import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import about from '../../package.json' with { type: 'json' }
import { parseOperatorCommand } from '../../src/cli/commands/arguments.ts'
import type { CommandOfVerb } from '../../src/cli/commands/index.ts'
import { parseConfig } from '../../src/config/config.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { applyAllowRules } from '../../src/mount/permission.ts'
import { findVolumeKind, volumeKindLookup } from '../../src/volume/index.ts'
import { kubeletOptions, type Volume } from '../docs/example.ts'
import { skipIfUnavailable } from '../helpers/unavailable.ts'
import { one, type Resource, render as renderByKubectl } from './render.ts'
import { COMPONENTS, kustomization } from './tree.ts'
import { faultsIn } from './validate.ts'

const FOLDER = resolve(import.meta.dirname, '../../driver/kubernetes')
const PLUGIN_DIRECTORIES: Readonly<Record<string, string>> = {
  default: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec',
  openshift: '/etc/kubernetes/kubelet-plugins/volume/exec',
  gke: '/home/kubernetes/flexvolume',
  aks: '/etc/kubernetes/volumeplugins',
  flatcar: '/var/lib/kubelet/volumeplugins',
  rke2: '/var/lib/kubelet/volumeplugins',
  k3s: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec',
}
const OVERLAYS = Object.entries(PLUGIN_DIRECTORIES)

const render = skipIfUnavailable(renderByKubectl)

const podOf = (resources: Resource[]) => one(resources, 'DaemonSet').spec.template
const containersOf = ({ spec }: Resource): Resource[] => [...(spec.initContainers ?? []), ...spec.containers]
const named = (template: Resource, name: string) => containersOf(template).find((container) => container.name === name)

describe('the overlays', () => {
  it('are exactly those in the directory', () => {
    expect(fs.readdirSync(join(FOLDER, 'overlays')).sort()).toEqual(Object.keys(PLUGIN_DIRECTORIES).sort())
  })

  it.each(OVERLAYS)('the overlay %s is complete, for its plugin directory only', (name, directory) => {
    const resources = render(join(FOLDER, 'overlays', name))
    expect(resources.flatMap((resource) => faultsIn(resource, { newer: true }))).toEqual([])
    const template = podOf(resources)
    const [mount] = named(template, 'install')?.volumeMounts ?? []
    const volume = template.spec.volumes.find((one: Resource) => one.name === mount.name)
    expect([template.metadata.annotations['modekeep/plugin-directory'], mount.mountPath, volume.hostPath.path]).toEqual(
      [directory, directory, directory],
    )
    const others = Object.values(PLUGIN_DIRECTORIES).filter((other) => other !== directory)
    expect(others.filter((other) => JSON.stringify(resources).includes(`"${other}"`))).toEqual([])
  })

  it.each(OVERLAYS)('the overlay %s is accepted by Kubernetes 1.20 with the component for that version', (name) => {
    const tree = kustomization(`overlays/${name}`, { components: ['components/before-1.30'] })
    expect(render(tree).flatMap((resource) => faultsIn(resource, { newer: false }))).toEqual([])
  })

  it("the overlay for OpenShift permits the pods' service account what the pods need", () => {
    const resources = render(join(FOLDER, 'overlays/openshift'))
    const { name, namespace } = one(resources, 'ServiceAccount').metadata
    expect(one(resources, 'RoleBinding').subjects).toEqual([{ kind: 'ServiceAccount', name, namespace }])
    expect(podOf(resources).spec.serviceAccountName).toBe(name)
  })
})

describe('a set of components', () => {
  it.each(COMPONENTS.map((list) => [list.join(' and ') || 'none', list] as const))(
    'the components %s make a complete DaemonSet',
    (_, list) => {
      const resources = render(kustomization('overlays/default', { components: list }))
      // A PodMonitor is the Prometheus operator's.
      const own = resources.filter(({ kind }) => kind !== 'PodMonitor')
      expect(own.flatMap((resource) => faultsIn(resource, { newer: true }))).toEqual([])
      const { selector, template } = one(resources, 'DaemonSet').spec
      expect(template.metadata.labels).toEqual(selector.matchLabels)
      const names = containersOf(template).map(({ name }) => name)
      const annotated = Object.keys(template.metadata.annotations).filter((key) => key.includes('apparmor'))
      expect(names).toEqual(expect.arrayContaining(annotated.map((key) => key.split('/')[1])))
      for (const container of containersOf(template)) {
        expect(container.image).toBe(`modekeep:${about.version}`)
        expect(container.securityContext.readOnlyRootFilesystem).toBe(true)
        for (const mount of container.volumeMounts ?? [])
          expect(template.spec.volumes.map((volume: Resource) => volume.name)).toContain(mount.name)
        for (const [, variable] of JSON.stringify(container.command).matchAll(/\$\((\w+)\)/g))
          expect(container.env.map((of: Resource) => of.name)).toContain(variable)
      }
    },
  )

  it('with uninstall has no heal, device plugin, CSI server or NRI plugin', () => {
    const template = podOf(
      render(
        kustomization('overlays/default', { components: ['device-plugin', 'csi', 'nri', 'components/uninstall'] }),
      ),
    )
    expect(containersOf(template).map(({ name }) => name)).toEqual(['uninstall', 'modekeep'])
  })
})

describe("the NRI plugin's container", () => {
  it('is started with valid arguments, and probed over the socket that it serves', () => {
    const { command, readinessProbe } = named(
      podOf(render(kustomization('overlays/default', { components: ['nri'] }))),
      'nri',
    ) as Resource
    const [wrapper, ...verb] = command
    expect(wrapper).toBe('on-node')
    const [prober, ...probe] = readinessProbe.exec.command
    expect(prober).toBe('modekeep')
    const { socket, directory } = parseOperatorCommand(verb, () => '/') as CommandOfVerb<'nri'>
    expect(parseOperatorCommand(probe, () => '/')).toMatchObject({ verb: 'nri', isProbe: true, socket, directory })
  })
})

describe('probes and metrics', () => {
  const container = (components: string[]) =>
    named(podOf(render(kustomization('overlays/default', { components }))), 'modekeep')
  const commandOf = ([, ...command]: string[]) => parseOperatorCommand(command, () => '/') as CommandOfVerb<'heal'>

  it('use the port that heal serves', () => {
    const { command, livenessProbe, readinessProbe } = container([]) as Resource
    const { listen } = commandOf(command)
    expect(listen).toMatchObject({ address: undefined, hasMetrics: false })
    for (const [probe, path] of [
      [livenessProbe, '/healthz'],
      [readinessProbe, '/readyz'],
    ]) {
      expect(probe.httpGet).toEqual({ path, port: listen?.port })
    }
  })

  it('are scraped by Prometheus only if the kustomization has the component metrics', () => {
    const { command, ports } = container(['components/metrics']) as Resource
    const { listen } = commandOf(command)
    expect(listen?.hasMetrics).toBe(true)
    const resources = render(kustomization('overlays/default', { components: ['components/metrics'] }))
    const { spec } = one(resources, 'PodMonitor')
    expect(ports).toEqual([{ name: spec.podMetricsEndpoints[0].port, containerPort: listen?.port }])
    expect(spec.selector).toEqual(one(resources, 'DaemonSet').spec.selector)
  })
})

describe('the CSI driver', () => {
  const resources = () => render(kustomization('overlays/default', { components: ['csi'] }))

  it('has the CSIDriver object of the documentation', () => {
    const page = fs.readFileSync(resolve(FOLDER, '../../docs/csi.md'), 'utf8')
    const [, shown = ''] = /```yaml\n(apiVersion: storage[\s\S]*?)```/.exec(page) ?? []
    expect(one(resources(), 'CSIDriver')).toEqual(parse(shown))
  })

  it('is probed over the socket that it serves, with time for the answer', () => {
    const { command, livenessProbe, readinessProbe } = named(podOf(resources()), 'csi') as Resource
    const served = parseOperatorCommand(command.slice(1), () => '/') as CommandOfVerb<'csi'>
    for (const { exec, timeoutSeconds } of [livenessProbe, readinessProbe]) {
      const [wrapper, ...verb] = exec.command
      expect(wrapper).toBe('modekeep')
      const { directory, name } = served
      expect(parseOperatorCommand(verb, () => '/')).toMatchObject({ verb: 'csi', isProbe: true, directory, name })
      expect(timeoutSeconds).toBeGreaterThan(5)
    }
    expect(livenessProbe.failureThreshold).toBeGreaterThan(1)
  })

  it("is started with valid arguments, under the name of its object, with the node's name", () => {
    const container = named(podOf(resources()), 'csi')
    const [wrapper, ...verb] = container?.command ?? []
    expect(wrapper).toBe('on-node')
    const args = container?.args.map((arg: string) => arg.replace('$(NODE_NAME)', 'node-1'))
    const command = parseOperatorCommand([...verb, ...args], () => '/')
    const { name } = one(resources(), 'CSIDriver').metadata
    expect(command).toMatchObject({ verb: 'csi', directory: '/var/lib/kubelet', name, nodeId: 'node-1' })
    const { args: words, volumeMounts } = container ?? expect.unreachable()
    expect(words).toContain('--api-server=$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)')
    const [{ name: volume, mountPath }] = volumeMounts
    expect(mountPath).toBe('/var/run/secrets/kubernetes.io/serviceaccount')
    expect(words).toContain(`--api-access=/var/lib/kubelet/pods/$(POD_UID)/volumes/kubernetes.io~projected/${volume}`)
    const source = container?.env.find((variable: Resource) => variable.name === 'NODE_NAME').valueFrom
    expect(source).toEqual({ fieldRef: { fieldPath: 'spec.nodeName' } })
  })
})

it('the CSI component permits its service account only to get one CSIDriver object', () => {
  const resources = render(kustomization('overlays/default', { components: ['csi'] }))
  const { name } = one(resources, 'CSIDriver').metadata
  expect(one(resources, 'ClusterRole').rules).toEqual([
    { apiGroups: ['storage.k8s.io'], resources: ['csidrivers'], resourceNames: [name], verbs: ['get'] },
  ])
  const account = one(resources, 'ServiceAccount').metadata
  expect(one(resources, 'ClusterRoleBinding')).toMatchObject({
    roleRef: { kind: 'ClusterRole', name: one(resources, 'ClusterRole').metadata.name },
    subjects: [{ kind: 'ServiceAccount', name: account.name, namespace: account.namespace }],
  })
  for (const kind of ['Role', 'RoleBinding']) expect(resources.filter((one) => one.kind === kind)).toEqual([])
})

describe('the policy that denies inline volumes', () => {
  const resources = () => render(kustomization('overlays/default', { components: ['components/inline-by-label'] }))
  const flex = { name: 'f', flexVolume: { driver: 'modekeep/fs' } }
  const csi = { name: 'c', csi: { driver: 'modekeep.csi' } }
  const others = [
    { name: 'a', emptyDir: {} },
    { name: 'b', flexVolume: { driver: 'other/fs' } },
    { name: 'd', csi: { driver: 'other.csi' } },
  ]

  /** As the API server does, of whose language this is a small part. */
  function isAllowed(spec: object): boolean {
    const [{ expression }] = one(resources(), 'ValidatingAdmissionPolicy').spec.validations
    const script = expression
      .replaceAll(/has\(([\w.]+)\)/g, '($1 !== undefined)')
      .replaceAll(/\.all\((\w), /g, '.every(($1) => ')
    return new Function('object', `return ${script}`)({ spec })
  }

  it.each([
    ['no volumes', {}, true],
    ["others' volumes", { volumes: others }, true],
    ['a FlexVolume', { volumes: [...others, flex] }, false],
    ['a CSI volume', { volumes: [csi, ...others] }, false],
    ['a claim', { volumes: [{ name: 'p', persistentVolumeClaim: { claimName: 'data' } }] }, true],
  ])('a pod with %s is permitted unless the pod has an inline volume of modekeep', (_, spec, allowed) => {
    expect(isAllowed(spec)).toBe(allowed)
  })

  it('applies to new pods in every namespace without the label', () => {
    const { spec, metadata } = one(resources(), 'ValidatingAdmissionPolicyBinding')
    const policy = one(resources(), 'ValidatingAdmissionPolicy')
    expect(spec.policyName).toBe(policy.metadata.name)
    // A pod that is there already must be updated still: its controller takes its finalizer away, and nothing changes its volumes.
    expect(policy.spec.matchConstraints.resourceRules[0].operations).toEqual(['CREATE'])
    expect(metadata.namespace).toBeUndefined()
    expect(spec.validationActions).toEqual(['Deny'])
    expect(spec.matchResources.namespaceSelector.matchExpressions).toEqual([
      { key: 'modekeep/inline', operator: 'NotIn', values: ['allowed'] },
    ])
  })
})

describe('the containers', () => {
  const rendered = () => podOf(render(kustomization('overlays/default', { components: ['device-plugin'] })))

  it('have verbs and arguments that modekeep accepts', () => {
    const template = rendered()
    const [, ...heal] = named(template, 'modekeep')?.command ?? []
    expect(parseOperatorCommand(heal, () => '/')).toMatchObject({ verb: 'heal', isWatching: true })
    const plugin = named(template, 'device-plugin')
    expect(plugin?.command).toEqual(['on-node', 'device-plugin'])
    expect(parseOperatorCommand(['device-plugin', ...(plugin?.args ?? [])], () => '/')).toMatchObject({ devices: 100 })
  })

  it('have only the needed capabilities', () => {
    const template = rendered()
    const capabilities = (name: string) => named(template, name)?.securityContext.capabilities
    expect(capabilities('install')).toEqual({ drop: ['ALL'] })
    expect(capabilities('modekeep').drop).toEqual(['ALL'])
    expect(capabilities('modekeep').add.toSorted()).toEqual(HEAL.toSorted())
    for (const key of ['hostNetwork', 'hostIPC']) expect(template.spec[key]).toBeUndefined()
    expect(template.spec.automountServiceAccountToken).toBe(false)
    expect(containersOf(template).filter(({ securityContext }) => securityContext.privileged)).toHaveLength(1)
  })

  it('have a configuration that the driver accepts', () => {
    expect(parseConfig(configOf(render(join(FOLDER, 'overlays/default'))), 'config.json').faults).toEqual([])
  })
})

/** What the installer reads, by the way that the pod has it. */
function configOf(resources: Resource[]): string {
  const template = podOf(resources)
  const { downwardAPI } = template.spec.volumes.find(({ name }: Resource) => name === 'config')
  const [{ path, fieldRef }] = downwardAPI.items
  const install = named(template, 'install')
  const mounted = install?.volumeMounts.find(({ name }: Resource) => name === 'config')
  expect(install?.command).toContain(`--config=${mounted?.mountPath}/${path}`)
  const [, key = ''] = /^metadata\.annotations\['(.*)'\]$/.exec(fieldRef.fieldPath) ?? []
  return template.metadata.annotations[key]
}

describe('a changed configuration', () => {
  it('is part of the pod template, so that a rollout and a rollback include the configuration', () => {
    const config = '{ "allow": [{ "sources": ["/srv/volumes/*"] }],\n  "logLevel": "debug" }\n'
    const resources = render(kustomization('overlays/gke', { config }))
    expect(configOf(resources)).toBe(config)
    expect(configOf(render(kustomization('overlays/gke', {})))).not.toBe(config)
  })

  it('renders no ConfigMap', () => {
    const kinds = render(kustomization('overlays/default', { config: '{}' })).map(({ kind }) => kind)
    expect(kinds.toSorted()).toEqual(['DaemonSet', 'ServiceAccount'])
  })

  it('has a template file with the defaults of the manifests', () => {
    const { spec } = parse(fs.readFileSync(join(FOLDER, 'config.yaml'), 'utf8'))
    const { annotations } = spec.template.metadata
    expect(annotations).toEqual({ 'modekeep/config': configOf(render(join(FOLDER, 'overlays/default'))) })
  })
})

describe("the README's kustomization", () => {
  it('is valid, with an image of a registry and a configuration', () => {
    const [, text = ''] = /```yaml\n([\s\S]*?)```/.exec(fs.readFileSync(join(FOLDER, 'README.md'), 'utf8')) ?? []
    const written = parse(text.replaceAll(/^ {3}/gm, ''))
    const directory = kustomization('overlays/default', {
      image: { newName: 'registry.example.org/modekeep' },
      config: '{}',
    })
    const { resources, ...rest } = parse(fs.readFileSync(join(directory, 'kustomization.yaml'), 'utf8'))
    expect({ components: [], ...written, resources }).toEqual({ ...rest, resources })
    expect(written.resources).toEqual(['../modekeep/driver/kubernetes/overlays/default'])
    expect(podOf(render(directory)).spec.containers[0].image).toBe(`registry.example.org/modekeep:${about.version}`)
  })

  it('works with every overlay in the table, with its directory', () => {
    const rows = [...fs.readFileSync(join(FOLDER, 'README.md'), 'utf8').matchAll(/^\| `(\w+)` \| `(\/[^`]+)` \|$/gm)]
    expect(Object.fromEntries(rows.map(([, name, directory]) => [name, directory]))).toEqual(PLUGIN_DIRECTORIES)
  })
})

describe('the examples', () => {
  const files = fs.readdirSync(join(FOLDER, 'examples')).map((name) => join(FOLDER, 'examples', name))
  const readAll = (file: string): Resource[] =>
    parseAllDocuments(fs.readFileSync(file, 'utf8')).map((document) => document.toJS())
  /** The configuration that the first comment of an example requires. */
  const requiredConfig = (file: string) =>
    parseConfig(`{ ${/"allow": .*\]/.exec(fs.readFileSync(file, 'utf8'))?.[0]} }`, '').config

  it.each([...files, join(FOLDER, 'device-plugin/example-pod.yaml')])(
    'the example %s is accepted by the API server',
    (file) => {
      const resources: Resource[] = parseAllDocuments(fs.readFileSync(file, 'utf8')).map((document) => document.toJS())
      expect(resources.flatMap((resource) => faultsIn(resource, { newer: true }))).toEqual([])
      for (const { spec } of resources.filter((resource) => resource.spec?.template)) {
        expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels)
      }
    },
  )

  const OF_OTHERS = files.filter((file) => fs.readFileSync(file, 'utf8').includes('modekeep/group'))

  it.each(OF_OTHERS)(
    "the example %s requests the group of a claim by an annotation, and prevents kubelet's walk",
    (file) => {
      const templates = readAll(file).filter(({ spec }) => spec?.template)
      expect(templates.length).toBeGreaterThan(0)
      for (const { spec: controller } of templates) {
        const { metadata, spec } = controller.template
        const { supplementalGroups = [], fsGroup } = spec.securityContext
        expect([...supplementalGroups, fsGroup]).toContain(Number(metadata.annotations['modekeep/group']))
        const claims = [...(controller.volumeClaimTemplates ?? []), ...(spec.volumes ?? [])].filter(
          (volume: Resource) => !('emptyDir' in volume),
        )
        expect(claims.length).toBeGreaterThan(0)
        expect(claims.every((claim) => 'persistentVolumeClaim' in claim || 'spec' in claim)).toBe(true)
        if (fsGroup !== undefined) expect(fs.readFileSync(file, 'utf8')).toContain('"fsGroupPolicy":"None"')
      }
    },
  )

  it.each(files.filter((file) => !OF_OTHERS.includes(file)))(
    'the example %s has volumes that modekeep accepts with the configuration of its first comment',
    (file) => {
      const resources = readAll(file)
      const secrets = resources.filter(({ kind }) => kind === 'Secret')
      const pods = resources.flatMap(({ kind, spec, metadata }) => {
        // A pod with its claim.
        const securityContext = { fsGroup: 2000 }
        if (kind === 'PersistentVolume')
          return [{ metadata, spec: { securityContext, volumes: [{ name: 'v', ...spec }] } }]
        const of = spec?.template?.spec ?? (kind === 'Pod' ? spec : undefined)
        return of === undefined ? [] : [{ metadata, spec: of }]
      })
      const volumes = pods.flatMap((pod) =>
        pod.spec.volumes.filter(({ flexVolume }: Volume) => flexVolume).map((volume: Volume) => ({ pod, volume })),
      )
      expect(volumes.length).toBeGreaterThan(0)
      for (const { pod, volume } of volumes) {
        const secretName = volume.flexVolume.secretRef?.name
        const secret = secrets.find(({ metadata }) => metadata.name === secretName)
        if (secretName !== undefined) expect(secret?.type).toBe('modekeep/fs')
        const config = requiredConfig(file)
        const request = parseFlexVolumeRequest(
          '/pods/p/volumes/modekeep~fs/v',
          JSON.stringify(kubeletOptions(pod, volume, secret?.stringData ?? {})),
          config,
          volumeKindLookup,
        )
        const kind = findVolumeKind(request.fsType)
        if (kind === undefined) throw new Error(`${file} has a volume of an unknown kind`)
        expect(applyAllowRules({ config }, request, kind)).toHaveProperty('rule')
      }
    },
  )
})

const HEAL = [
  'CHOWN',
  'DAC_READ_SEARCH',
  'FOWNER',
  'FSETID',
  'SETFCAP',
  'SETGID',
  'SETUID',
  'SYS_ADMIN',
  'SYS_CHROOT',
  'SYS_PTRACE',
]
