export const HELP = `modekeep device-plugin [--devices N] [--kubelet-dir DIR]

For pods that run a FUSE daemon of their own: offers /dev/fuse to kubelet as the resource modekeep/fuse, until SIGTERM
or SIGINT. It waits for kubelet, registers again whenever kubelet restarts, and reports the devices as unhealthy while
/dev/fuse does not open. What it does is told on stdout, one JSON line for each event.

  --devices N            how many containers of the node may have the device at once (default: 100)
  --kubelet-dir DIR      where kubelet keeps its files (default: /var/lib/kubelet); its device-plugins directory is there
                         whatever kubelet's --root-dir says

Example:
  modekeep device-plugin --devices 50
`
