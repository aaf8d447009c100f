/** Where containerd answers CRI, as it is packaged and in k3s and MicroK8s. CRI-O does not tell a pod's groups. */
export const CRI_SOCKETS: readonly string[] = [
  '/run/containerd/containerd.sock',
  '/run/k3s/containerd/containerd.sock',
  '/var/snap/microk8s/common/run/containerd.sock',
]
