import { createConfigTable, createMapRulesTable, createRulesTable } from './options-config.ts'
import { createKindsTable, createMountOptionSections } from './options-kinds.ts'
import { createAuthorOptionsTable, createKubeletKeysTable } from './options-pod.ts'

/** docs/options.md, out of the schemas and what the kinds answer. */
export function createOptionsPage(): string {
  return `<!-- Written by "npm run docs" from src/config and src/volume. Change it there; a test compares. -->

# Options

Every option with its default and an example. Examples of whole pods are in [volumes.md](volumes.md).

1. [In a pod](#in-a-pod) · [Kinds of volume](#kinds-of-volume) · [Mount options](#mount-options)
2. [Kubelet's own keys](#kubelets-own-keys)
3. [The node's configuration](#the-nodes-configuration)

## In a pod

Below \`flexVolume.options\`. Every value is a string: quote numbers and \`"true"\`. Unknown keys and invalid or contradictory values are refused,
all in one message in the pod's event. What the node's [rules](#rules) refuse comes in a second message.

${createAuthorOptionsTable()}

FlexVolume has three more fields: \`fsType\` (the kind of volume), \`readOnly\` (\`true\` or \`false\`) and \`secretRef\` (\`name\` of a
Secret of type \`modekeep/fs\`, for cifs, fuse.sshfs and FUSE programs whose rule has \`secretKeys\`). A key of the Secret that the kind
does not use is refused.

## Kinds of volume

A rule of the node must name each \`fsType\` except \`bind\` and \`tmpfs\` in its \`fsTypes\`.

${createKindsTable()}

\`fuse.<program>\` is any other FUSE program of the node. [mounts.md](mounts.md#kernels) lists the file systems that support \`idmap\`.

## Mount options

${createMountOptionSections()}

## Kubelet's own keys

Kubelet adds these to a pod's options. The API server refuses them in a pod.

${createKubeletKeysTable()}

\`kubernetes.io/secret/<key>\` holds each value of the Secret, in base64. Other names below \`kubernetes.io/\`, of a newer
kubelet, are accepted and not used.

## The node's configuration

\`/etc/modekeep/config.json\`, or the file of the environment variable \`MODEKEEP_CONFIG\`: one JSON object, all keys optional, read at each call.
While a key is unknown or invalid every mount is refused with a message that names it; \`init\` and \`unmount\` go on with the default.

${createConfigTable()}

### Rules

\`allow\` is a list of rules. A rule matches a request when all its keys match. The first rule that matches decides, its \`readOnly\` and
\`singleNode\` too. A withdrawn rule stops new mounts, but no repeat, repair or unmount of an existing mount. \`modekeep doctor\`
explains each rule; \`modekeep doctor --config FILE\` does so with a file before it is installed.

A bind mount gives a directory a second path, and a pod gets nothing by one path that it may not have by another. If a rule's
\`sources\` name another path of the source, of a directory above it, or of a part of it, the rules must allow the pod that path too. The strictest
\`setGid\`, \`systemGroups\` and \`protectedGroups\` count. With \`/srv/team\` mounted at \`/data/x\` by \`mount --bind\`, these rules give
\`/data/x\` only to pods of \`team\`, and read-only:

\`\`\`json
{ "allow": [{ "sources": ["/data/*"] }, { "namespaces": ["team"], "sources": ["/srv/*"], "readOnly": true }] }
\`\`\`

${createRulesTable()}

A disk or an image is refused if a rule lets a pod mount a directory that holds it for writing, or if it has a hard link: keep images in a
directory of their own, with \`"fsTypes": ["ext4"]\` in its rule.

### Rules for volumes of other drivers

\`map\` is a list of rules for the annotation \`modekeep/group\`. A rule allows what matches all its keys. The default is one rule without keys,
\`{}\`, which your rules replace: to also allow a hostPath, write \`"map": [{}, {"volumes": ["hostPath"], "sources": ["/srv/shared"]}]\`. A hostPath
that a rule's \`sources\` name by another path too must be allowed by both. For modekeep's own volumes \`allow\` decides.

${createMapRulesTable()}
`
}
