import { type AllowRulesVerdict, checkRequestAgainstRules } from '../config/allow.ts'
import { isSameMountRequest, type MountRequest } from '../config/mount-request.ts'
import { type AllowRule, DEFAULT_ALLOWED_FS_TYPES, findRulePermittingWrites } from '../config/rule.ts'
import { formatSource, getSourcePath, parseSource } from '../config/source.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { isDirectory } from '../kernel/host.ts'
import { parseVolumePod } from '../kernel/mount-table/kubelet-volume.ts'
import { type MountTableSnapshot, snapshotMountTable } from '../kernel/mount-table/mountinfo.ts'
import { findPathsToSameLocation } from '../kernel/mount-table/tree-location.ts'
import {
  applyRuleFacts,
  listReadableMountRecords,
  type MountRecord,
  type RequestRuleFacts,
} from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import type { OpenedSource, VolumeKind } from '../volume/kind/kind.ts'
import { findRequiredOptionNaming } from '../volume/kind/options.ts'
import {
  leadsToProtectedPlace,
  listProtectedFilePlaces,
  listProtectedRecordPlaces,
  type ProtectedPlace,
} from '../volume/kind/source-path.ts'
import { findOtherSourcePaths } from '../volume/second-paths.ts'

/**
 * Checks a request against the node's rules before its source is opened. For an existing mount the facts of its rule come
 * from its record: a removed rule stops new mounts, never a repeat or a repair of an existing one.
 * @returns the request with the facts of its rule, and whether the rules were applied now
 * @throws {Refusal}
 */
export function permitMountRequest(
  session: Session,
  requested: MountRequest,
  kind: VolumeKind,
  record: MountRecord | undefined,
): { request: MountRequest; isNew: boolean } {
  const isMountedNow = record?.mounted !== undefined && record.boot === session.host.bootId()
  if (isMountedNow && isSameMountRequest(record.request, requested)) {
    return { request: applyRuleFacts(requested, record), isNew: false }
  }
  const verdict = applyAllowRules(session, requested, kind)
  if ('refusal' in verdict) throw new Refusal(verdict.refusal)
  const facts = extractRuleFacts(verdict.rule)
  const secretKeys = kind.secretKeys === 'by rule' ? facts.secretKeys : undefined
  return { request: applyRuleFacts(requested, { ...facts, secretKeys }), isNew: true }
}

/** Applies the node's rules to a request, by the path that it names. */
export function applyAllowRules(
  { config, secrets }: Pick<Session, 'config' | 'secrets'>,
  requested: MountRequest,
  kind: VolumeKind,
): AllowRulesVerdict {
  const naming = (option: string) => findRequiredOptionNaming(kind.optionRules(), option)
  // Secrets are decoded only for kinds that need them.
  const secretNames = kind.secretKeys === 'by rule' ? [...(secrets?.keys() ?? [])] : []
  const walksServer = kind.isRemote === true && kind.walk === true
  return checkRequestAgainstRules(
    config.allow,
    { ...requested, secretNames },
    { walksServer, hasNoSource: kind.hasNoSource === true, naming },
  )
}

const extractRuleFacts = (rule: AllowRule): RequestRuleFacts => ({
  ...rule,
  setGid: rule.setGid === 'root' ? undefined : rule.setGid,
})

/**
 * Checks an opened source where its path is not enough: for protected directories, for rules that name it by other
 * paths, and for pods that could write to a disk or an image.
 * @returns the request, restricted to what all of these rules permit
 * @throws {Refusal}
 */
export function permitOpenedSource(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  opened: OpenedSource,
): MountRequest {
  const table = snapshotMountTable(session.host)
  refuseProtectedSource(session, request, opened, table)
  const permitted = permitOtherSourcePaths(session, request, kind, opened, table)
  refuseSourceWritableByPods(session, kind, request, opened)
  return permitted
}

/**
 * Permits a source that overlaps the content of a rule's path through another mount only if the pod may have that path
 * too. Locations are compared through every mount of the node.
 */
function permitOtherSourcePaths(
  session: Session,
  request: MountRequest,
  kind: VolumeKind,
  { handle, path: openedPath }: OpenedSource,
  table: MountTableSnapshot,
): MountRequest {
  const requested = getSourcePath(request.source) ?? openedPath
  const kubeletDirectory = parseVolumePod(request.directory)?.root
  const named = { handle, path: requested, kubeletDirectory, rules: session.config.allow }
  return findOtherSourcePaths(session, table, named).reduce((permitted, { path, source }) => {
    const verdict = applyAllowRules(session, { ...request, source: parseSource(source) }, kind)
    if ('rule' in verdict) return restrictMountRequest(permitted, extractRuleFacts(verdict.rule))
    const { reason, remedy, cause } = verdict.refusal
    throw Refusal.of(
      'source-second-path',
      `source ${quoteValue(requested)} shows the content of ${quoteValue(path)} by another mount, which a rule of "allow" names, and the pod must be allowed both: ${reason}`,
      remedy,
      cause,
    )
  }, request)
}

/** Restricts a request to what another rule for the same source permits. `secretKeys` come from the rule of its path. */
function restrictMountRequest(request: MountRequest, other: RequestRuleFacts): MountRequest {
  const { fsGroup, secretKeys } = request
  const groups = [request.protectedGroups, other.protectedGroups].filter((list) => list !== undefined)
  return applyRuleFacts(request, {
    setGid: fsGroup.setGid === false || other.setGid === false ? false : fsGroup.setGid,
    systemGroups: request.systemGroups && other.systemGroups,
    protectedGroups: groups.length === 0 ? undefined : [...new Set(groups.flat())],
    secretKeys,
  })
}

/**
 * Refuses a disk, or a file for a FUSE program, that a pod could write to. Its writer could forge files that the node's
 * rules do not permit, and may exploit the kernel or the program.
 * @throws {Refusal} if the node's rules or a recorded mount let a pod write to the source
 */
function refuseSourceWritableByPods(
  session: Session,
  { isDisk, hasDaemon }: VolumeKind,
  { source: requested }: MountRequest,
  source: OpenedSource,
): void {
  // The kernel trusts the blocks of a file system. A FUSE program runs as root and trusts a file that it reads.
  if (!isDisk && (!hasDaemon || isDirectory(source.stat))) return
  const danger = isDisk
    ? 'who writes to a disk that is mounted rules the kernel'
    : 'who writes to an image rules the program that reads it as root'
  const { host, config } = session
  const shown = quoteValue(formatSource(requested))
  // Another mount of the file system may show the source at a path where a rule lets pods write.
  const table = host.mounts.table()
  const real = [source.path, host.inodes.pathOf(source.handle)]
  const places = new Set([...real, ...real.flatMap((path) => findPathsToSameLocation(table, path))])
  // Records count, not current mounts: a container keeps a mount that the node has lost, and a repair restores it.
  const mounts = listReadableMountRecords(session)
  for (const path of places) {
    const rule = findRulePermittingWrites(config.allow, path, DEFAULT_ALLOWED_FS_TYPES)
    if (rule !== undefined) {
      throw Refusal.of(
        'image-writable',
        `source ${shown} may be written by pods, and ${danger}`,
        'move it to where no rule lets a pod write, or have the administrator of the node narrow that rule',
        `rule ${quoteValue(rule)} lets a pod mount a directory that holds it`,
      )
    }
    const writer = mounts.find(
      ({ source: mounted, request }) =>
        !request.readOnly && request.source.type === 'local' && mounted !== undefined && path.startsWith(`${mounted}/`),
    )
    if (writer !== undefined) {
      throw Refusal.of(
        'image-writable',
        `source ${shown} may be written by pod ${writer.pod ?? '(unnamed)'}, which has ${quoteValue(writer.source)} mounted for writing`,
        'move the image elsewhere, or delete that pod',
      )
    }
  }
  const { links } = source.stat
  if (!isDirectory(source.stat) && links > 1) {
    throw Refusal.of(
      'image-writable',
      `source ${shown} has ${links} names (hard links), and a pod may write to it by another one`,
      'copy it to a file of its own',
    )
  }
}

/**
 * Refuses a source that leads to modekeep's records or to the volumes of other pods and, if it is writable, to the log or
 * the configuration. Locations are compared, because another mount may lead there by any path.
 * @throws {Refusal}
 */
function refuseProtectedSource(
  session: Session,
  { source, directory, readOnly }: MountRequest,
  opened: OpenedSource,
  table: MountTableSnapshot,
): void {
  const { host, config } = session
  const shown = quoteValue(formatSource(source))
  const leadsTo = (place: ProtectedPlace) => leadsToProtectedPlace(host, table, opened.handle, place)
  if (leadsTo(listProtectedRecordPlaces(config))) {
    throw Refusal.of(
      'source-protected',
      `source ${shown} leads to another path of the state directory`,
      'name another directory',
      "it holds modekeep's own records, which no pod may see",
    )
  }
  const { root } = parseVolumePod(directory) ?? {}
  if (root !== undefined && leadsTo({ directory: `${root}/pods`, isTree: true })) {
    throw Refusal.of(
      'source-protected',
      `source ${shown} leads to the volumes of pods in kubelet's directory ${quoteValue(root)}`,
      'name a directory outside of it',
    )
  }
  if (readOnly) return
  for (const { what, file, place } of listProtectedFilePlaces(config)) {
    if (!leadsTo(place)) continue
    throw Refusal.of(
      'source-protected',
      `source ${shown} holds modekeep's ${what} ${quoteValue(file)}, which no pod may write`,
      'set readOnly on the volume, or name another directory',
    )
  }
}
