import { configuration, mapRules, rules } from './options-config.ts'
import { kindsTable, mountOptions } from './options-kinds.ts'
import { authorOptions, kubeletKeys } from './options-pod.ts'

/** docs/options.md, out of the schemas and what the kinds answer. */
export function optionsPage(): string {
  return `<!-- Written by "npm run docs" from src/request and src/volume. Change it there; a test compares. -->

# Options

Everything that can be written, with its default and an example. Examples of whole pods are in [volumes.md](volumes.md).

1. [In a pod](#in-a-pod) · [Kinds of volume](#kinds-of-volume) · [Mount options](#mount-options)
2. [Kubelet's own keys](#kubelets-own-keys)
3. [The node's configuration](#the-nodes-configuration)

## In a pod

Below \`flexVolume.options\`. Every value is a string: quote numbers and \`"true"\`. An unknown key, a value that is not
allowed and two that contradict each other are refused, all in one message in the pod's event. What the node's
[rules](#rules) do not let the pod have is told once the options are right, again all of it in one message.

${authorOptions()}

Beside \`options\`, FlexVolume has three fields of its own: \`fsType\` (the kind of volume), \`readOnly\` (\`true\` or
\`false\`) and \`secretRef\` (\`name\` of a Secret of type \`modekeep/fs\`, for cifs, fuse.sshfs and FUSE programs
whose rule has \`secretKeys\`). A key of the Secret that the kind does not take is refused.

## Kinds of volume

\`fsType\` of a volume. Each but \`bind\` and \`tmpfs\` has to be named in the \`fsTypes\` of a rule of the node.

${kindsTable()}

\`fuse.<program>\` is any other FUSE program of the node. Which file systems can be mapped (\`idmap\`), and since which Linux:
[mounts.md](mounts.md#kernels).

## Mount options

${mountOptions()}

## Kubelet's own keys

What kubelet adds to a pod's options. They cannot be written in a pod: the API server refuses names below \`kubernetes.io/\`.

${kubeletKeys()}

\`kubernetes.io/secret/<key>\` holds each value of the Secret, in base64. Other names below \`kubernetes.io/\`, of a newer
kubelet, are accepted and not used.

## The node's configuration

\`/etc/modekeep/config.json\`, or the file that the environment variable \`MODEKEEP_CONFIG\` names: one JSON object, all keys
optional, read at each call. An unknown key or a bad value keeps every mount from being made, with a message that names it;
\`init\` and \`unmount\` go on with the default.

${configuration()}

### Rules

\`allow\` is a list of rules. A rule matches a pod's request when every key that it has matches. The first rule that matches
decides, its \`readOnly\` and \`singleNode\` too. A rule that is withdrawn stops new mounts, never a repeat, a repair or an unmount of a mount that
stands. \`modekeep doctor\` explains each rule and warns of those that let one namespace into another's;
\`modekeep doctor --config FILE\` does so with a file before it is installed.

A bind mount gives a directory more than one path. A pod gets nothing by one path that it may not have by another: if a rule's
\`sources\` name another path of the source, of a directory that holds it, or of a part of it, the rules must allow the pod that path too.
Of \`setGid\`, \`systemGroups\` and \`protectedGroups\` the strictest rule then counts. modekeep compares the file system and the path in it,
through every mount in the mount table but those of kubelet and its own. With \`/srv/team\` mounted at \`/data/x\` by \`mount --bind\`, these
rules give \`/data/x\` to pods of \`team\` only, for reading only:

\`\`\`json
{ "allow": [{ "sources": ["/data/*"] }, { "namespaces": ["team"], "sources": ["/srv/*"], "readOnly": true }] }
\`\`\`

${rules()}

A disk or an image is never mounted where some rule lets a pod mount a directory that holds it for writing, or where the file
has another name (a hard link): who can write to a mounted file system's blocks rules the kernel. Keep images in a
directory of their own, with \`"fsTypes": ["ext4"]\` in the rule for it.

### Rules for volumes of other drivers

\`map\` is a list of rules for the annotation \`modekeep/group\`. A rule allows what matches every key that it has; without \`map\`
there is one rule without keys, \`{}\`, and \`"map": []\` allows nothing. Rules that are written replace that one: to allow a hostPath besides,
write \`"map": [{}, {"volumes": ["hostPath"], "sources": ["/srv/shared"]}]\`. modekeep's own volumes are never given by it: \`allow\` decides
about them. A hostPath that \`sources\` of a rule name by another path too must be allowed by both paths, as a source in \`allow\`.

${mapRules()}
`
}
