import { NODE } from '../plane/certificates.ts'
import { ANY_VOLUME_PARTS } from './any-volume-steps.ts'

/** A command of the administrator's. */
export interface Step {
  command: string
  /** The page that has it, with VERSION for the version: the play fails where that page does not say it. */
  page?: string
  /** Where he is: in the directory with the release's files, with his kustomization, or in the unpacked archive. */
  at?: 'release' | 'cluster' | 'modekeep'
  /** What is seen of it; the play fails where it is not. */
  shows?: RegExp
}

export interface Part {
  title: string
  /** Lines about what is not run here. */
  notes?: readonly string[]
  steps: readonly Step[]
}

const KUBERNETES = 'driver/kubernetes/README.md'
const RELEASE = 'docs/release.md'
const README = 'README.md'

const ROLLED_OUT = {
  page: KUBERNETES,
  command: 'kubectl -n kube-system rollout status daemonset modekeep',
  shows: /successfully rolled out/,
} as const

const config = (more: string) => `cat > config.yaml <<'EOF'
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: modekeep
  namespace: kube-system
spec:
  template:
    metadata:
      annotations:
        modekeep/config: |
          { "allow": [{ "sources": ["/srv/volumes/*"] }], "csiPodInfoOnMount": true${more} }
EOF`

const kustomization = (...more: string[]) => `cat > kustomization.yaml <<'EOF'
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../modekeep/driver/kubernetes/overlays/flatcar
components:
${['components/before-1.30', 'csi', ...more].map((name) => `  - ../modekeep/driver/kubernetes/${name}`).join('\n')}
patches:
  - path: config.yaml
EOF`

/** What an administrator does who has the files of a release and the pages in it, on a cluster of one node that has kubelet's directory of Flatcar. */
export const PARTS: readonly Part[] = [
  {
    title: 'The release: its sums, its archive, its image',
    steps: [
      { command: 'ls -l' },
      { page: RELEASE, command: 'sha256sum --check --ignore-missing SHA256SUMS', shows: /image\.tar: OK/ },
      {
        page: KUBERNETES,
        command: 'mkdir modekeep && tar -xzf modekeep-VERSION-linux-amd64.tar.gz -C modekeep --strip-components=1',
      },
      { at: 'modekeep', command: 'sha256sum --quiet --check SHA256SUMS && echo all as SHA256SUMS says' },
      { page: KUBERNETES, command: 'ctr --namespace k8s.io images import modekeep-VERSION-image.tar' },
      { command: 'ctr --namespace k8s.io images ls -q | grep modekeep', shows: /library\/modekeep:/ },
    ],
  },
  {
    title: 'The kustomization, applied: with the overlay of the example, whose directory this kubelet does not use',
    steps: [
      { command: 'mkdir cluster' },
      { at: 'cluster', command: 'kubectl get nodes -o wide' },
      { at: 'cluster', command: 'cp ../modekeep/driver/kubernetes/config.yaml .' },
      { at: 'cluster', command: config('') },
      { at: 'cluster', command: kustomization().replace('overlays/flatcar', 'overlays/default') },
      { at: 'cluster', page: README, command: 'kubectl apply -k .', shows: /daemonset\.apps\/modekeep created/ },
      {
        at: 'cluster',
        command:
          'until kubectl -n kube-system logs daemonset/modekeep -c install 2> /dev/null | grep -B 9 overlay; do sleep 1; done',
        shows: /overlays?.*flatcar/,
      },
    ],
  },
  {
    title: 'The overlay that it named',
    steps: [
      { at: 'cluster', command: kustomization() },
      { at: 'cluster', page: README, command: 'kubectl apply -k .', shows: /daemonset\.apps\/modekeep configured/ },
      { at: 'cluster', ...ROLLED_OUT },
      { at: 'cluster', command: 'kubectl -n kube-system get pods -o wide', shows: /modekeep-\S+ +2\/2 +Running/ },
      { at: 'cluster', command: 'kubectl get csidrivers,csinodes' },
      {
        at: 'modekeep',
        page: KUBERNETES,
        command: 'install -m 755 driver/kubernetes/kubectl*modekeep /usr/local/bin/',
      },
      { at: 'cluster', page: KUBERNETES, command: 'kubectl modekeep doctor', shows: new RegExp(`^${NODE} `, 'm') },
    ],
  },
  {
    title: 'A first pod, with a claim',
    steps: [
      {
        command:
          "mkdir -p /srv/volumes && install -d -m 2770 -g 5000 /srv/volumes/archive && cd /srv/volumes/archive && touch notes && chmod 0640 notes && printf '#!/bin/sh\\n' > program && chmod 0750 program && ls -ln",
      },
      {
        at: 'modekeep',
        command: `sed 's/node-1/${NODE}/' driver/kubernetes/examples/persistent-volume.yaml | kubectl apply -f -`,
        shows: /pod\/archive-reader created/,
      },
      {
        at: 'cluster',
        command: 'kubectl wait --for=condition=Ready pod/archive-reader --timeout=90s',
        shows: /condition met/,
      },
      {
        at: 'cluster',
        command: "kubectl exec archive-reader -- sh -c 'id && ls -ln /archive && echo written > /archive/of-the-pod'",
        shows: /-rw-r----- +1 0 +2000 .* notes/,
      },
      { command: 'ls -ln /srv/volumes/archive', shows: /-rw-r----- +1 +0 +5000 .* notes/ },
      {
        at: 'cluster',
        page: KUBERNETES,
        command: 'kubectl modekeep status',
        shows: /default\/archive-reader .*idmap.*healthy/,
      },
      {
        at: 'cluster',
        command: 'kubectl modekeep logs --pod default/archive-reader',
        shows: /mount +Success/,
      },
    ],
  },
  {
    title: 'Another configuration, and back',
    steps: [
      { at: 'cluster', command: config(', "logLevel": "debug"') },
      { at: 'cluster', page: README, command: 'kubectl apply -k .' },
      { at: 'cluster', ...ROLLED_OUT },
      { command: 'cat /etc/modekeep/config.json', shows: /debug/ },
      {
        at: 'cluster',
        page: KUBERNETES,
        command: 'kubectl -n kube-system rollout undo daemonset modekeep',
      },
      { at: 'cluster', ...ROLLED_OUT },
      { command: 'cat /etc/modekeep/config.json', shows: /^(?!.*debug).*allow/ },
      { at: 'cluster', command: 'kubectl exec archive-reader -- cat /archive/of-the-pod', shows: /written/ },
    ],
  },
  {
    title: 'Uninstalled: it waits for the last pod',
    steps: [
      { at: 'cluster', command: `${config('')}\n${kustomization('components/uninstall')}` },
      { at: 'cluster', page: README, command: 'kubectl apply -k .' },
      {
        at: 'cluster',
        command:
          'until kubectl -n kube-system logs daemonset/modekeep -c uninstall 2> /dev/null | grep -A 3 mounted; do sleep 1; done',
        shows: /pods\/\S+\/volumes\/modekeep~fs\/archive/,
      },
      {
        at: 'modekeep',
        command: `sed 's/node-1/${NODE}/' driver/kubernetes/examples/persistent-volume.yaml | kubectl delete -f -`,
      },
      { at: 'cluster', ...ROLLED_OUT },
      { at: 'cluster', page: KUBERNETES, command: 'kubectl delete -k .' },
      {
        at: 'cluster',
        command: 'kubectl wait --for=delete pod -n kube-system -l app.kubernetes.io/name=modekeep --timeout=90s',
      },
      {
        at: 'cluster',
        command:
          'kubectl get all,configmaps,serviceaccounts,csidrivers,pv -A | grep -e modekeep -e archive || echo nothing is left',
        shows: /nothing is left/,
      },
      {
        command: 'ls -A /var/lib/kubelet/volumeplugins; ls -ln /srv/volumes/archive',
        shows: /-rw-r----- +1 +0 +5000 .* notes/,
      },
    ],
  },
  ...ANY_VOLUME_PARTS,
]
