import { SOCKET } from '../../kubelet/node/containerd.ts'
import { PAUSE } from '../../kubelet/node/images.ts'
import { KUBELETS_ROOT, PLUGINS } from '../../kubelet/node/kubelet.ts'
import type { Programs } from '../programs.ts'
import { ADDRESS, NODE } from './certificates.ts'
import { isAtLeast } from './version.ts'

const ETCD = 'http://127.0.0.1:2379'

/** What the cluster's programs are started with. */
export function commands({ etcd, kubernetes }: Programs, version: string, place: string) {
  const pki = `${place}/pki`
  const gates = isAtLeast(version, '1.21') ? [] : ['--feature-gates=CSIServiceAccountToken=true']
  const config = (name: string) => `--kubeconfig=${pki}/${name}.kubeconfig`
  return {
    etcd: [
      etcd,
      `--data-dir=${place}/etcd`,
      `--listen-client-urls=${ETCD}`,
      `--advertise-client-urls=${ETCD}`,
      '--listen-peer-urls=http://127.0.0.1:2380',
      '--unsafe-no-fsync',
    ],
    'kube-apiserver': [
      kubernetes['kube-apiserver'],
      `--etcd-servers=${ETCD}`,
      '--bind-address=127.0.0.1',
      '--secure-port=6443',
      `--advertise-address=${ADDRESS}`,
      '--service-cluster-ip-range=10.96.0.0/16',
      '--allow-privileged=true',
      '--authorization-mode=Node,RBAC',
      '--enable-admission-plugins=NodeRestriction',
      `--client-ca-file=${pki}/ca.crt`,
      `--tls-cert-file=${pki}/apiserver.crt`,
      `--tls-private-key-file=${pki}/apiserver.key`,
      `--kubelet-certificate-authority=${pki}/ca.crt`,
      `--kubelet-client-certificate=${pki}/admin.crt`,
      `--kubelet-client-key=${pki}/admin.key`,
      '--kubelet-preferred-address-types=InternalIP',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${pki}/accounts.key`,
      `--service-account-signing-key-file=${pki}/accounts.key`,
      ...gates,
    ],
    'kube-controller-manager': [
      kubernetes['kube-controller-manager'],
      config('controller-manager'),
      '--leader-elect=false',
      '--use-service-account-credentials',
      `--service-account-private-key-file=${pki}/accounts.key`,
      `--root-ca-file=${pki}/ca.crt`,
      '--flex-volume-plugin-dir=/nonexistent',
      // A claim that is created before its volume is checked again.
      '--pvclaimbinder-sync-period=2s',
    ],
    'kube-scheduler': [kubernetes['kube-scheduler'], config('scheduler'), '--leader-elect=false'],
    kubelet: [
      kubernetes.kubelet,
      config('kubelet'),
      `--config=${place}/kubelet.json`,
      `--hostname-override=${NODE}`,
      `--node-ip=${ADDRESS}`,
      `--root-dir=${KUBELETS_ROOT}`,
      `--cert-dir=${place}/certificates`,
      // Later ones have these in the file alone, or know nothing else.
      ...(isAtLeast(version, '1.24') ? [] : ['--container-runtime=remote', `--pod-infra-container-image=${PAUSE}`]),
      ...(isAtLeast(version, '1.27') ? [] : [`--container-runtime-endpoint=unix://${SOCKET}`]),
      '--v=3',
    ],
  }
}

/** Kubelet's configuration file. */
export function kubeletsFile(version: string, place: string): string {
  const pki = `${place}/pki`
  return JSON.stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    // Also where the cases of test:kubelet ask.
    address: '0.0.0.0',
    readOnlyPort: 10255,
    healthzPort: 0,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: `${pki}/ca.crt` },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: `${pki}/kubelet-server.crt`,
    tlsPrivateKeyFile: `${pki}/kubelet-server.key`,
    volumePluginDir: PLUGINS,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    imageGCHighThresholdPercent: 100,
    imageMinimumGCAge: '24h',
    evictionHard: {
      'memory.available': '0%',
      'nodefs.available': '0%',
      'nodefs.inodesFree': '0%',
      'imagefs.available': '0%',
    },
    resolvConf: '',
    syncFrequency: '10s',
    // What /stats/summary says of volumes is as old as this.
    volumeStatsAggPeriod: '10s',
    nodeStatusUpdateFrequency: '4s',
    ...(isAtLeast(version, '1.21') ? {} : { featureGates: { CSIServiceAccountToken: true } }),
    ...(isAtLeast(version, '1.27') ? { containerRuntimeEndpoint: `unix://${SOCKET}` } : {}),
    ...(isAtLeast(version, '1.31') ? { failCgroupV1: false } : {}),
  })
}
