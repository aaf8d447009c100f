/** Why specs of the suite are not run: the first pattern that a spec's name has. What has none is run, and must pass. */
export const REASONS: readonly { pattern: string; reason: string }[] = [
  { pattern: '\\(ntfs\\)', reason: 'Windows' },
  {
    pattern: 'Testpattern: Inline-volume',
    reason: "of drivers in Kubernetes' own tree: the suite cannot be given another's",
  },
  {
    pattern: 'Testpattern: Pre-provisioned',
    reason: "of drivers in Kubernetes' own tree: the suite cannot be given another's",
  },
  { pattern: 'block volmode', reason: 'volumeMode Block is refused by modekeep' },
  {
    pattern: 'in a pod with mismatched mode',
    reason: 'of drivers that have volumeMode Block: the suite leaves it out',
  },
  { pattern: 'with different volume mode', reason: 'one of its two volumes is of volumeMode Block' },
  { pattern: 'Snapshot', reason: 'modekeep has no controller: nothing is copied' },
  { pattern: '(pvc|any volume) data source', reason: 'modekeep has no controller: nothing is copied' },
  { pattern: 'volume-expand', reason: 'modekeep has no controller: nothing is resized' },
  { pattern: '\\((ext3|ext4|xfs)\\)', reason: "of drivers that make file systems: a source's is what it is" },
  { pattern: 'Disruptive', reason: 'stops the kubelet by SSH and systemd: test:cluster restarts it instead' },
  { pattern: 'GenericEphemeralVolume', reason: 'behind a feature gate in 1.20; needs a provisioner, not the driver' },
  { pattern: '\\] topology ', reason: 'modekeep has no topology: a directory is of its node' },
  { pattern: 'volumeLimits', reason: 'modekeep limits no number of volumes' },
  { pattern: 'fsgroupchangepolicy', reason: 'wants a kubelet that hands the group over, and nodes to log in to' },
  { pattern: 'on(?: a)? different node', reason: 'wants two nodes' },
]

/** Some of each kind of volume, none that waits for minutes. */
export const QUICK = [
  'ephemeral should create',
  'ephemeral should support multiple',
  'subPath should support existing directory',
  'subPath should support file as subpath',
  'subPath should be able to unmount after',
  'subPath should support readOnly directory',
  'volumes should',
  'provisioning should provision storage with mount options',
]

export const reasonFor = (name: string) => REASONS.find(({ pattern }) => new RegExp(pattern).test(name))?.reason
