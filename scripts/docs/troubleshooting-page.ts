import { FAULT_ENTRY_SECTIONS, type FaultEntry } from '../../src/errors/entries/index.ts'

/** docs/troubleshooting.md: symptoms without a code, then the entry of each code. */
export function createTroubleshootingPage(): string {
  const sections = Object.entries(FAULT_ENTRY_SECTIONS).map(
    ([title, entries]) =>
      `## ${title}\n\n${Object.entries<FaultEntry>(entries)
        .map(([code, entry]) => formatFaultEntry(code, entry))
        .join('\n')}`,
  )
  return `${TROUBLESHOOTING_PAGE_HEAD}\n${sections.join('\n')}`
}

function formatFaultEntry(code: string, { meaning, cause, remedy, see }: FaultEntry): string {
  const link = see === undefined ? '' : ` See [${see.split('#')[0]}](${see}).`
  return `### ${code}\n\n${cause === undefined ? meaning : `${meaning} ${cause}`}\n\n**Remedy:** ${remedy}${link}\n`
}

const TROUBLESHOOTING_PAGE_HEAD = `<!-- Written by "npm run docs" from src/errors/entries and scripts/docs/troubleshooting-page.ts. Change it there; a test compares. -->

# Troubleshooting

A message of modekeep ends with its code, such as \`[group-conflict]\`. Search this page for the code, or run \`modekeep explain CODE\` on
the node. Failures without a code are in [Symptoms](#symptoms).

| where to look | content |
|---|---|
| \`kubectl describe pod NAME\` | events: \`MountVolume.SetUp failed … reason: \` and all faults of the request; for CSI \`rpc error: code = … desc = \` |
| \`modekeep logs --failed\` on the node | failed calls with the complete message; an event is cut to 1,024 bytes |
| \`modekeep status\` on the node | every mount, how its group was applied, and mounts that are not healthy |
| \`modekeep doctor\` on the node | faults of the node, each with its remedy |
| \`journalctl -u kubelet\` | kubelet's own messages |

CSI has the same codes as FlexVolume. Its messages have \`volumeAttributes "…"\` for \`option "…"\` and \`nodePublishSecretRef\` for \`secretRef\`.

\`\`\`sh
# The failures of a node from the log file, the latest last.
jq -c 'select(.outcome == "Failure") | {time, verb, pod, error}' /var/log/modekeep/modekeep.log
\`\`\`

## Symptoms

### no volume plugin matched

Kubelet did not find the driver. \`./install.sh --dry-run\` prints kubelet's plugin directory and the reason for it. If that directory was
created while kubelet ran, restart kubelet. If its log has \`Error creating Flexvolume plugin\`, the driver's \`init\` failed: run it by hand.

### Unable to attach or mount volumes … timed out waiting for the condition

A call takes long: a walk of a large volume, or a server that does not respond. \`modekeep status\` shows the progress of a walk.
Helper programs are ended after \`helperTimeoutSeconds\`, and kubelet tries again. \`ownership: idmap\` visits no inodes.

### orphaned pod … found, but volume paths are still present on disk

The pod was deleted while kubelet was down or had no driver. Install the driver, then run \`modekeep heal\`, which also runs a pending
restore. \`heal --watch\` does so by itself. If heal keeps the mount, \`modekeep status\` shows the reason: restart kubelet. Once you are
sure that the pod does not exist, run \`modekeep unmount DIR\` and \`rmdir DIR\`. **Never run \`rm -r\` below \`/var/lib/kubelet/pods\`**: a
volume that is still mounted there loses its data.

### remove …: device or resource busy

Something else is mounted at the directory or below it. \`findmnt -R DIR\` shows it.

### cannot get secret of type modekeep/fs

The Secret of \`secretRef\` has another \`type\`, which cannot be changed. Create a new Secret with \`type: modekeep/fs\`.

### The pod runs, but its files do not have its group

Without \`ownership\`, and on read-only volumes, modekeep changes no group. \`modekeep status\` shows the method and its reason. With
\`OnRootMismatch\` a walk does not visit files that were added later. New files inherit the group of a set-gid directory, but moved
files keep theirs. Kubelet does not pass the pod's own \`fsGroupChangePolicy\`. Run \`modekeep apply DIR --fsgroup G
--fs-group-change-policy Always\`, with \`--force\` also for files that others changed.

### Permission denied, although the group was applied

The mode of the file has no bits for the group: modekeep adds them only with \`groupAccess: grant\`. \`modekeep plan DIR --fsgroup G\` shows
modes and groups. Run \`chmod g+rw\`, or use \`groupAccess: grant\`. With \`idmap\`, new files in a directory without set-gid have the group
of the process: set option \`setGid\` to \`root\`, or run \`chmod g+s\` ([new files](any-volume.md#new-files)). With mount option \`noexec\`
nothing can be executed.

### Transport endpoint is not connected

The daemon of a FUSE volume is dead, and kubelet calls no driver then. \`modekeep heal\`, or \`heal --watch\` by itself, starts the daemon
again and replaces the mount. A mount with a Secret cannot be repaired: delete the pod. A running container keeps the dead mount until
it restarts, for example by a liveness probe that reads a file of the volume.

### no such file or directory, at the start of a container with subPath

The volume has the layout of a ConfigMap or git-sync, and its update deleted the file that kubelet had bind mounted. \`modekeep heal\`
repairs volumes of modekeep, \`modekeep heal --kubelet-subpaths\` also those of kubelet
([sources](mounts.md#sources-that-are-updated-atomically)).

### UnexpectedAdmissionError, for a pod with modekeep/fuse

Kubelet admitted the pod before the device plugin registered. A Deployment or Job creates a new pod, a bare pod must be created again
([restarts](fuse-in-pods.md#what-happens-when-something-restarts)).

### /dev/fuse: Permission denied

\`modekeep doctor\` warns of the mode of \`/dev/fuse\`, and the device plugin logs \`restricted\`. Set the mode 0666 by a udev rule or
systemd-tmpfiles, then delete the pod ([mode](fuse-in-pods.md#the-devices-mode)).
`
