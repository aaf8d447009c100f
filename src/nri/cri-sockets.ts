/** Paths of containerd's CRI socket: of its packages, of k3s and of MicroK8s. CRI-O does not report a pod's groups. */
export const CRI_SOCKETS: readonly string[] = [
  '/run/containerd/containerd.sock',
  '/run/k3s/containerd/containerd.sock',
  '/var/snap/microk8s/common/run/containerd.sock',
]
