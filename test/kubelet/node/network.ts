import * as fs from 'node:fs'

/** The directories of containerd's network plugins and of their configuration. */
export interface Network {
  plugins: string
  configuration: string
}

/** Pods get addresses of a bridge, which the node has too: they reach each other and the node, and nothing else. */
export function makeNetwork(plugins: string, configuration: string): Network {
  fs.mkdirSync(configuration, { recursive: true })
  const ipam = { type: 'host-local', ranges: [[{ subnet: '10.88.0.0/16' }]], routes: [{ dst: '0.0.0.0/0' }] }
  const bridge = { type: 'bridge', bridge: 'cni0', isGateway: true, ipMasq: false, ipam }
  const list = { cniVersion: '0.4.0', name: 'pods', plugins: [bridge] }
  fs.writeFileSync(`${configuration}/10-pods.conflist`, JSON.stringify(list))
  return { plugins, configuration }
}
