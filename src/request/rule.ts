import type { SecretKeys } from './secret-keys.ts'
import type { SystemGroupRule } from './system-group-rule.ts'

/** How a CSI volume came to its pod: written in the pod itself, or bound to it by a claim. */
export const LIFECYCLES = ['inline', 'persistent'] as const
export type Lifecycle = (typeof LIFECYCLES)[number]

/**
 * One rule of the node's configuration about who may have what. It allows a request when every key it has matches. A
 * key left out means any, but for fsTypes, idmapFrom and mountOptions.
 */
export interface Rule extends SystemGroupRule {
  /** Globs of namespaces: `team-*`. */
  namespaces?: readonly string[] | undefined
  /** Of CSI volumes, how they came to their pods. With it no FlexVolume matches. */
  volumes?: readonly Lifecycle[] | undefined
  /** What holdsSource compares; of no meaning for a tmpfs, which has no source. */
  sources?: readonly string[] | undefined
  /** Left out: bind and tmpfs. */
  fsTypes?: readonly string[] | undefined
  ownership?: readonly string[] | undefined
  groupAccess?: readonly string[] | undefined
  /** Numbers and ranges of groups that a pod may have as its fsGroup: `2000-2999`. */
  fsGroups?: readonly string[] | undefined
  /** The same of groups on disk that a pod may have shown as its own. Left out: none. */
  idmapFrom?: readonly string[] | undefined
  /** Names of options, or whole ones with their values. Left out: what the kind allows by itself. */
  mountOptions?: readonly string[] | undefined
  /** True: who asks to write is refused. */
  readOnly?: boolean | undefined
  /** True: no other node mounts what these servers have, so that a walk may record what was there before it. */
  singleNode?: boolean | undefined
  /**
   * False: a walk gives directories no set-gid bit. Files never get one. `root`: as true, and the option setGid may set it on
   * the root of a mapped volume.
   */
  setGid?: boolean | 'root' | undefined
  /** `include`: what is mounted inside of a source may be shown, where a rule allows it as a source of its own. */
  submounts?: 'include' | undefined
  /** How keys of a Secret reach a FUSE program. Left out: none does, and a pod with a Secret is refused. */
  secretKeys?: SecretKeys | undefined
}

export const DEFAULT_FS_TYPES: readonly string[] = ['bind', 'tmpfs']

/** Deny by default: a source is a hostPath in disguise. Each namespace has a directory of its own, and may not mount that. */
export const DEFAULT_RULES: readonly Rule[] = [{ sources: ['/var/lib/modekeep/volumes/{namespace}/*'] }]

export const NAMESPACE = '{namespace}'

/** A DNS label (RFC 1123), as every namespace is: no path can be made of it. */
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
