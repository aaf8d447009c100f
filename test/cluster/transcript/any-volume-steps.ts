import { FOREIGN } from '../foreign/driver.ts'
import type { Part } from './steps.ts'

/** Claims of another driver's volumes with FILES files, which the cluster has. */
export const CLAIMS = ['before', 'after'] as const
export const FILES = 100_000
export const SHOP = 'shop'

const statefulSet = (name: string) => `cat > ${name}.yaml <<'EOF'
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: ${name}, namespace: ${SHOP} }
spec:
  serviceName: ${name}
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec:
      terminationGracePeriodSeconds: 0
      securityContext: { runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000 }
      containers:
        - name: main
          image: busybox:1.36
          command: [sleep, infinity]
          volumeMounts: [{ name: data, mountPath: /data }]
      volumes: [{ name: data, persistentVolumeClaim: { claimName: ${name} } }]
EOF`

/** From the creation of the pod to its running container. */
const timed = (name: string) =>
  `start=$(date +%s%N); kubectl apply -f ${name}.yaml && kubectl -n ${SHOP} rollout status statefulset ${name} && echo "$((($(date +%s%N) - start) / 1000000)) ms"`

/** Groups and modes of the volume's inodes on the node, with their number. */
const onDisk = (name: string) =>
  `find "$(findmnt -rno TARGET | grep 'globalmount$' | grep ${name})" -printf '%G %m %y\\n' | sort | uniq -c`

const writes = (name: string) =>
  `kubectl -n ${SHOP} exec ${name}-0 -- sh -c 'id && ls -lnd /data && cat /data/one && echo written > /data/sub/of-the-pod && ls -ln /data/sub'`

export const ANY_VOLUME_PARTS: readonly Part[] = [
  {
    title: `A claim of another CSI driver with ${FILES} files, and a StatefulSet with an fsGroup: kubelet walks`,
    steps: [
      { command: `kubectl get csidriver ${FOREIGN} -o jsonpath='{.spec.fsGroupPolicy}{"\\n"}'`, shows: /^File$/m },
      { command: statefulSet('before') },
      { command: timed('before'), shows: /\d+ ms/ },
      { command: writes('before'), shows: /written|of-the-pod/ },
      { command: onDisk('before'), shows: /100002 2000 660 f/ },
      { command: `kubectl delete -f before.yaml --wait` },
    ],
  },
  {
    title: 'The chart',
    steps: [
      {
        command:
          'helm install modekeep modekeep-VERSION.tgz --namespace kube-system --set distribution=flatcar,doors.nri.enabled=true',
        shows: /STATUS: deployed/,
      },
      { command: 'kubectl -n kube-system rollout status daemonset modekeep', shows: /successfully rolled out/ },
    ],
  },
  {
    title: 'The same StatefulSet, in a labelled namespace, with a driver whose volumes kubelet does not walk',
    steps: [
      { command: `kubectl label namespace ${SHOP} modekeep/any-volume=required` },
      // Its fsGroupPolicy can be changed since Kubernetes 1.29.
      {
        command: `kubectl get csidriver ${FOREIGN} -o json | sed 's/"fsGroupPolicy": "File"/"fsGroupPolicy": "None"/' | kubectl replace --force -f -`,
      },
      { command: statefulSet('after') },
      // This API server, 1.20, has no such policies: the annotation is added as the policy for the label writes it.
      {
        command: `kubectl patch --local -f after.yaml --type merge -p '{"spec":{"template":{"metadata":{"annotations":{"modekeep/group":"2000"}}}}}' -o yaml > annotated.yaml && mv annotated.yaml after.yaml && grep modekeep/group after.yaml`,
        shows: /modekeep\/group: "2000"/,
      },
      { command: timed('after'), shows: /\d+ ms/ },
      { command: writes('after'), shows: /drwxrws--- .* 0 +2000/ },
      { command: onDisk('after'), shows: /100000 1500 640 f/ },
      { command: 'kubectl modekeep status', shows: new RegExp(`${SHOP}/after-0`) },
      { command: `kubectl delete -f after.yaml --wait` },
    ],
  },
  {
    title: 'On Kubernetes 1.36, not run here: the label alone does it',
    notes: [
      'helm upgrade modekeep modekeep-VERSION.tgz --namespace kube-system --reuse-values --set policies.anyVolume=true',
      "kubectl -n shop get pod after-0 -o jsonpath='{.metadata.annotations}'",
      '',
      'label of the namespace   expected annotations                                 expected fsGroup',
      'required                 modekeep/group: "2000"                               2000',
      'optional                 modekeep/group: "2000", modekeep/group-optional      2000',
      'instead-of-fsgroup       modekeep/group: "2000", required-plugins             none; supplementalGroups 2000',
      '',
      'npm run test:cluster -- --kubernetes DIR compares the pods of its tests with such a table.',
    ],
    steps: [],
  },
  {
    title: 'The executable in an empty root',
    steps: [
      {
        command:
          'mkdir -p empty/proc && install modekeep/modekeep empty/ && mount -t proc proc empty/proc && find empty -maxdepth 1',
      },
      { command: 'chroot empty /modekeep version', shows: /glibc/ },
      { command: 'chroot empty /modekeep init', shows: /"status":"Success"/ },
      { command: 'umount empty/proc' },
    ],
  },
]
