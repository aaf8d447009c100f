import { basename, dirname } from 'node:path'
import { isDirectory } from '../host/host.ts'
import { podPlaceOf } from '../mount-table/kubelet-volume.ts'
import { snapshotTable } from '../mount-table/table-snapshot.ts'
import { pathsToSame } from '../mount-table/tree-location.ts'
import { quoted, Refusal } from '../refusal/refusal.ts'
import { allow } from '../request/allow.ts'
import { isSameMount, type MountRequest } from '../request/mount-request.ts'
import { DEFAULT_FS_TYPES } from '../request/rule.ts'
import { ruleToWrite } from '../request/rule-source.ts'
import { sourceText } from '../request/source.ts'
import { listMountRecords, type MountRecord, ruleFactsOf } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import type { OpenedSource, VolumeKind } from '../volume/kind/kind.ts'
import { namingOf } from '../volume/kind/options.ts'
import { leadsToPlace, type ProtectedPlace, recordPlaces } from '../volume/kind/protected-places.ts'

/**
 * The one place that asks the node's rules, before anything of a source is looked at. What is known of a mount that was
 * allowed when it was made is taken from its record: a rule that is withdrawn stops new mounts, never a repeat or a
 * repair of one that stands.
 * @returns the request with what its rule says of it, and whether it was allowed just now
 * @throws {Refusal}
 */
export function allowed(
  session: Session,
  asked: MountRequest,
  kind: VolumeKind,
  record: MountRecord | undefined,
): { request: MountRequest; isNew: boolean } {
  const stands = record?.mounted !== undefined && record.boot === session.host.bootId()
  if (stands && isSameMount(record.request, asked)) {
    return { request: { ...asked, ...ruleFactsOf(record) }, isNew: false }
  }
  const naming = (option: string) => namingOf(kind.optionRules(), option)
  // Secrets are decoded for kinds that need them, and nowhere else.
  const secretNames = kind.secretKeys === 'by rule' ? [...(session.secrets?.keys() ?? [])] : []
  const verdict = allow(
    session.config.allow,
    { ...asked, secretNames },
    {
      walksServer: kind.isRemote === true && kind.walk === true,
      naming,
    },
  )
  if ('refusal' in verdict) throw new Refusal(verdict.refusal)
  const { rule } = verdict
  const facts = ruleFactsOf({ ...rule, setGid: rule.setGid === 'root' ? undefined : rule.setGid })
  return {
    request: { ...asked, ...facts, secretKeys: kind.secretKeys === 'by rule' ? facts.secretKeys : undefined },
    isNew: true,
  }
}

/** What whoever writes to a source could do by that, beside writing; undefined: nothing. */
function dangerOf({ isDisk, hasDaemon }: VolumeKind, { stat }: OpenedSource): string | undefined {
  // The kernel believes what a file system's blocks say.
  if (isDisk) return 'who writes to a disk that is mounted rules the kernel'
  // So does a program, which runs as root and takes a file for an image or an archive.
  return hasDaemon && !isDirectory(stat) ? 'who writes to an image rules the program that reads it as root' : undefined
}

/**
 * Whoever can write to a disk, or to a file that a FUSE program is to read, makes files that the node's rules never gave
 * him, and may rule the kernel or the program.
 * @throws {Refusal} for one that some pod could write to, by the node's rules or by a mount that stands
 */
export function refuseWritable(
  session: Session,
  kind: VolumeKind,
  { source: asked }: MountRequest,
  source: OpenedSource,
): void {
  const danger = dangerOf(kind, source)
  if (danger === undefined) return
  const { host, config } = session
  const shown = quoted(sourceText(asked))
  // Another mount of its file system may show it elsewhere, where a rule lets pods write.
  const table = host.mounts.table()
  const real = [source.path, host.inodes.pathOf(source.handle)]
  const places = new Set([...real, ...real.flatMap((path) => pathsToSame(table, path))])
  // By the records, not by what is mounted now: a container keeps what the node has lost, and a repair brings it back.
  const mounts = listMountRecords(session)
  for (const path of places) {
    const rule = ruleToWrite(config.allow, path, DEFAULT_FS_TYPES)
    if (rule !== undefined) {
      throw new Refusal(
        `source ${shown} may be written by pods, and ${danger}: rule ${quoted(rule)} lets a pod mount a directory that holds it; ` +
          'move it to where no rule lets a pod write, or have the administrator of the node narrow that rule',
      )
    }
    const writer = mounts.find(
      ({ source: mounted, request }) =>
        !request.readOnly && request.source.type === 'local' && mounted !== undefined && path.startsWith(`${mounted}/`),
    )
    if (writer !== undefined) {
      throw new Refusal(
        `source ${shown} may be written by pod ${writer.pod ?? '(unnamed)'}, which has ${quoted(writer.source)} mounted for writing: move the image elsewhere, or delete that pod`,
      )
    }
  }
  const { links } = source.stat
  if (!isDirectory(source.stat) && links > 1) {
    throw new Refusal(
      `source ${shown} has ${links} names (hard links), and a pod may write to it by another one: copy it to a file of its own`,
    )
  }
}

/**
 * Refuses a source by which a pod would reach what the node's rules cannot give: modekeep's records, the volumes of other
 * pods, and for writing also the log and the configuration. Its path does not tell: another mount may lead there.
 * @throws {Refusal}
 */
export function refuseProtected(
  session: Session,
  { source, directory, readOnly }: MountRequest,
  opened: OpenedSource,
): void {
  const { host, config } = session
  const table = snapshotTable(host)
  const shown = quoted(sourceText(source))
  const leadsTo = (place: ProtectedPlace) => leadsToPlace(host, table, opened.handle, place)
  if (leadsTo(recordPlaces(config))) {
    throw new Refusal(
      `source ${shown} leads to another path of the state directory: it holds modekeep's own records, which no pod may see; name another directory`,
    )
  }
  const { root } = podPlaceOf(directory) ?? {}
  if (root !== undefined && leadsTo({ directory: `${root}/pods`, isTree: true })) {
    throw new Refusal(
      `source ${shown} leads to the volumes of pods in kubelet's directory ${quoted(root)}: name a directory outside of it`,
    )
  }
  if (readOnly) return
  for (const [what, file] of [
    ['log', config.logFile],
    ['configuration', config.configFile],
  ] as const) {
    if (file === undefined || !leadsTo({ directory: dirname(file), names: [basename(file)], isTree: false })) continue
    throw new Refusal(
      `source ${shown} holds modekeep's ${what} ${quoted(file)}, which no pod may write: set readOnly on the volume, or name another directory`,
    )
  }
}
