import type { SecretKeys } from './secret-keys.ts'
import type { SystemGroupRule } from './system-group-rule.ts'

/** Kinds of CSI volumes: written in the pod itself, or bound by a claim. */
export const LIFECYCLES = ['inline', 'persistent'] as const
export type Lifecycle = (typeof LIFECYCLES)[number]

/**
 * A rule of `allow` in the node's configuration. It allows a request if every key that it has matches. A missing key
 * matches anything, except fsTypes, idmapFrom and mountOptions.
 */
export interface Rule extends SystemGroupRule {
  /** Globs of namespaces: `team-*`. */
  namespaces?: readonly string[] | undefined
  /** Allowed kinds of CSI volumes. A rule with this key matches no FlexVolume. */
  volumes?: readonly Lifecycle[] | undefined
  /** Entries as for matchesSource. Ignored for a tmpfs, which has no source. */
  sources?: readonly string[] | undefined
  /** Left out: bind and tmpfs. */
  fsTypes?: readonly string[] | undefined
  ownership?: readonly string[] | undefined
  groupAccess?: readonly string[] | undefined
  /** Numbers and ranges of the groups that a pod may have as its fsGroup: `2000-2999`. */
  fsGroups?: readonly string[] | undefined
  /** Numbers and ranges of groups on disk that a pod may have shown as its own. Left out: none. */
  idmapFrom?: readonly string[] | undefined
  /** Names of options, or options with their values. Left out: those that the kind allows by itself. */
  mountOptions?: readonly string[] | undefined
  /** True: writable mounts are refused. */
  readOnly?: boolean | undefined
  /** True: no other node mounts the volumes of these servers, so a walk may record their original groups. */
  singleNode?: boolean | undefined
  /**
   * False: a walk does not add set-gid to directories. Files never get it. `root`: like true, and the option setGid may
   * set it on the root of a mapped volume.
   */
  setGid?: boolean | 'root' | undefined
  /** `include`: mounts inside of a source may be shown, if a rule allows each as a source of its own. */
  submounts?: 'include' | undefined
  /**
   * Delivery of a Secret's keys to a FUSE program. Left out: none is passed, and a pod with a Secret is refused.
   */
  secretKeys?: SecretKeys | undefined
}

export const DEFAULT_FS_TYPES: readonly string[] = ['bind', 'tmpfs']

/**
 * Denies all other sources, because a source is a hostPath in disguise. Each namespace has a directory of its own,
 * which it may not mount itself.
 */
export const DEFAULT_RULES: readonly Rule[] = [{ sources: ['/var/lib/modekeep/volumes/{namespace}/*'] }]

export const NAMESPACE = '{namespace}'

/** Every namespace is a DNS label (RFC 1123), so it cannot form a path. */
export function isNamespace(text: string | undefined): text is string {
  return text !== undefined && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text)
}

export function matchesGlob(glob: string, text: string): boolean {
  return new RegExp(`^${glob.split('*').map(RegExp.escape).join('.*')}$`).test(text)
}

/** @param ranges `2000` or `2000-2999` */
export function isInRanges(ranges: readonly string[], group: number): boolean {
  return ranges.some((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return first !== undefined && last !== undefined && first <= group && group <= last
  })
}
