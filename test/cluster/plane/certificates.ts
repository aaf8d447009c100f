import * as fs from 'node:fs'
import { runCommand } from '../../../scripts/fetch/command.ts'

export const NODE = 'node'
export const ADDRESS = '10.99.0.1'
const API = 'https://127.0.0.1:6443'

/** By name: the subject, and for servers the names they answer to. */
const CERTIFICATES: Readonly<Record<string, { subject: string; names?: string }>> = {
  apiserver: {
    subject: '/CN=kube-apiserver',
    names: `IP:127.0.0.1,IP:${ADDRESS},IP:10.96.0.1,DNS:kubernetes.default.svc`,
  },
  'kubelet-server': { subject: `/CN=${NODE}`, names: `IP:${ADDRESS},DNS:${NODE}` },
  kubelet: { subject: `/O=system:nodes/CN=system:node:${NODE}` },
  admin: { subject: '/O=system:masters/CN=admin' },
  'controller-manager': { subject: '/CN=system:kube-controller-manager' },
  scheduler: { subject: '/CN=system:kube-scheduler' },
}

const openssl = (...args: string[]) => runCommand('openssl', args)

/** Makes an authority, a certificate and a kubeconfig for each that speaks to the API server, a key for service accounts. */
export function makeCertificates(directory: string): void {
  fs.mkdirSync(directory, { recursive: true })
  const ca = `${directory}/ca`
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    `${ca}.key`,
    '-out',
    `${ca}.crt`,
    '-days',
    '2',
    '-subj',
    '/CN=modekeep-test',
  )
  for (const [name, { subject, names }] of Object.entries(CERTIFICATES)) {
    const file = `${directory}/${name}`
    const use = names === undefined ? 'clientAuth' : 'serverAuth'
    const extensions = [`extendedKeyUsage=${use}`, ...(names === undefined ? [] : [`subjectAltName=${names}`])]
    fs.writeFileSync(`${file}.ext`, extensions.join('\n'))
    openssl('req', ...key, '-keyout', `${file}.key`, '-out', `${file}.csr`, '-subj', subject)
    const by = ['-CA', `${ca}.crt`, '-CAkey', `${ca}.key`, '-CAcreateserial']
    openssl('x509', '-req', '-in', `${file}.csr`, ...by, '-out', `${file}.crt`, '-days', '2', '-extfile', `${file}.ext`)
    if (names === undefined) fs.writeFileSync(`${file}.kubeconfig`, kubeconfig(directory, name))
  }
  openssl('genrsa', '-out', `${directory}/accounts.key`, '2048')
}

const kubeconfig = (directory: string, name: string) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: API, 'certificate-authority': `${directory}/ca.crt` } }],
    users: [
      { name, user: { 'client-certificate': `${directory}/${name}.crt`, 'client-key': `${directory}/${name}.key` } },
    ],
    contexts: [{ name: 'c', context: { cluster: 'c', user: name } }],
    'current-context': 'c',
  })
