import { describe, expect, it } from 'vitest'
import { parseKubeletArguments, parsePluginDir } from '../../../src/cli/node-state/kubelets.ts'

const NONE = { pluginDir: undefined, config: undefined, configDir: undefined }

describe('recognition of kubelet', () => {
  it.each([
    ['/usr/bin/kubelet', [], { kind: 'kubelet', ...NONE }],
    ['kubelet', ['--volume-plugin-dir=/p', '--v=4'], { kind: 'kubelet', ...NONE, pluginDir: '/p' }],
    ['kubelet', ['--volume_plugin_dir', '/p'], { kind: 'kubelet', ...NONE, pluginDir: '/p' }],
    ['kubelet', ['--config', '/c', '--config-dir=/d'], { kind: 'kubelet', ...NONE, config: '/c', configDir: '/d' }],
    ['kubelet', ['--volume-plugin-dir=/a', '--volume-plugin-dir=/b'], { kind: 'kubelet', ...NONE, pluginDir: '/b' }],
    ['/hyperkube', ['kubelet', '--config=/c'], { kind: 'kubelet', ...NONE, config: '/c' }],
    ['/usr/local/bin/k3s', ['server', '--kubelet-arg=volume-plugin-dir=/p'], { kind: 'k3s', ...NONE, pluginDir: '/p' }],
    ['/usr/local/bin/k3s', ['agent', '--kubelet-arg', '--config=/c'], { kind: 'k3s', ...NONE, config: '/c' }],
    ['/usr/local/bin/k3s server', [], { kind: 'k3s', ...NONE }],
    ['rke2-agent', [], { kind: 'rke2', ...NONE }],
  ])('the process %s with arguments %j is recognized as a kubelet', (program, args, found) => {
    expect(parseKubeletArguments([program, ...args])).toEqual(found)
  })

  it.each([
    ['/usr/bin/kubectl', ['get', 'pods']],
    ['/hyperkube', ['apiserver']],
    ['k3s', ['kubectl']],
    ['bash', ['kubelet']],
    ['/opt/kubelet-helper', []],
    ['', []],
  ])('the process %s with arguments %j is not recognized as a kubelet', (program, args) => {
    expect(parseKubeletArguments([program, ...args])).toBeUndefined()
  })

  it.each([
    ['kind: KubeletConfiguration\nvolumePluginDir: /p\n', '/p'],
    ['volumePluginDir: "/p q" # where\n', '/p q'],
    ["{'volumePluginDir': '/p'}", '/p'],
    ['{"a":1,"volumePluginDir":"/p","b":2}', '/p'],
    ['# volumePluginDir: /no\n', undefined],
    ['myvolumePluginDir: /no\n', undefined],
    ['volumePluginDir: /a\r\nvolumePluginDir: /b\r\n', '/b'],
    ['', undefined],
  ])('the configuration text %j has the expected plugin directory', (text, directory) => {
    expect(parsePluginDir(text)).toBe(directory)
  })
})
