import type { Handle, Host } from '../../host/host.ts'
import { DIRECTORY, FILE_TYPE } from '../../host/host.ts'
import { openInside, subPathFaults } from '../../path/inside.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import type { MountRequest } from '../../request/mount-request.ts'
import type { KindRequest } from '../../request/request.ts'
import type { VolumeKind } from '../kind/kind.ts'
import { words } from '../kind/option-rules.ts'
import { type OptionRules, optionFaults, ownOptions } from '../kind/options.ts'
import { pathOf, sourceFaults } from '../kind/source-path.ts'
import { deviceOf } from './block-device.ts'
import { refusedMount, refusedPart, refuseNodesOwn, refuseOtherContent, refuseTwin } from './block-refusals.ts'
import { openBlockSource } from './block-source.ts'

interface DiskRules {
  name: string
  /** Deny by default: nothing that names another device, stops the node at an error, or speaks to other parts of it. */
  options: OptionRules
  /** The option that leaves the log as it is, for a device that nobody can write: then the disk may look torn. */
  withoutLog?: string
  /** Given where the pod gives none of that name. */
  always?: string
  isReadOnly?: true
}

/** mount(8), ext4(5), xfs(5), btrfs(5) */
const DISKS: readonly DiskRules[] = [
  {
    name: 'ext4',
    options: new Map([
      ['data', { pattern: /^data=(ordered|journal)$/, example: 'data=journal' }],
      ['errors', { pattern: /^errors=(remount-ro|continue)$/, example: 'errors=remount-ro' }],
      ...words('discard', 'noload'),
    ]),
    withoutLog: 'noload',
    // Else the disk itself says what an error does, and may say: panic.
    always: 'errors=remount-ro',
  },
  {
    name: 'xfs',
    options: new Map(words('nouuid', 'noquota', 'discard', 'norecovery')),
    withoutLog: 'norecovery',
  },
  {
    name: 'btrfs',
    options: new Map([
      ['subvol', { pattern: /^subvol=\/?[^/]+(\/[^/]+)*$/, example: 'subvol=data' }],
      ['subvolid', { pattern: /^subvolid=[1-9][0-9]{0,17}$/, example: 'subvolid=256' }],
      ['compress', { pattern: /^compress=(no|zlib|lzo|zstd)(:[0-9]{1,2})?$/, example: 'compress=zstd' }],
      ['rescue', { pattern: /^rescue=nologreplay$/, example: 'rescue=nologreplay' }],
      ...words('discard'),
    ]),
    withoutLog: 'rescue=nologreplay',
  },
  { name: 'squashfs', options: new Map(), isReadOnly: true },
]

/** A file system on a disk of the node, or in an image file. */
function block(rules: DiskRules): VolumeKind {
  return {
    name: rules.name,
    isDisk: true,
    persistent: true,
    walk: rules.isReadOnly ? 'nothing can be changed' : true,
    root: 'file system',
    optionRules: () => rules.options,
    faults: (request, config) => [
      ...sourceFaults(request, config, 'block device or image file'),
      ...(request.subPath === undefined ? [] : subPathFaults(request.subPath)),
      ...optionFaults(rules.name, request.mountOptions, rules.options, config),
      ...writeFaults(rules, request),
    ],
    openSource: (host, { source }) => openBlockSource(host, source),
    async openTree({ host, request, source, stateDir, isVolume }) {
      if (source === undefined) throw new Error(`no source for ${request.directory}`)
      const readOnly = request.readOnly || rules.isReadOnly === true
      const device = await deviceOf(host, pathOf(request.source), source, readOnly, stateDir)
      try {
        refuseOtherContent(host, device, request)
        refuseNodesOwn(host, device, request, isVolume)
        const tree = mountDevice(host, device, request, fsOptions(rules, request), readOnly)
        try {
          refuseTwin(host, device, tree, request)
          return request.subPath === undefined ? host.inodes.duplicate(tree) : partOf(host, tree, request.subPath)
        } finally {
          host.inodes.close(tree)
        }
      } finally {
        host.inodes.close(device)
      }
    },
  }
}

function writeFaults(rules: DiskRules, { mountOptions, readOnly }: KindRequest): string[] {
  if (rules.isReadOnly && mountOptions.includes('rw')) {
    return [`option "mountOptions" has rw: ${rules.name} is always read-only, leave it out`]
  }
  if (readOnly || rules.withoutLog === undefined || !mountOptions.includes(rules.withoutLog)) return []
  return [
    `option "mountOptions" has ${rules.withoutLog}, which is for read-only volumes: set readOnly, or leave it out`,
  ]
}

function fsOptions({ always }: DiskRules, { mountOptions }: MountRequest): string[] {
  const options = ownOptions(mountOptions)
  const name = always?.split('=', 1)[0]
  return always === undefined || options.some((option) => option.startsWith(`${name}=`))
    ? options
    : [...options, always]
}

/** Read-only, unless the file system is mounted for writing already: then the mount alone is. */
function mountDevice(host: Host, device: Handle, request: MountRequest, options: string[], readOnly: boolean): Handle {
  const create = (more: string[]) => host.mounts.createTree(request.fsType, [...options, ...more], device)
  try {
    return create(readOnly ? ['ro'] : [])
  } catch (error) {
    const refused = refusedMount(host, device, request, error)
    if (!readOnly || refused.reason !== 'mounted for writing') throw refused.error
  }
  try {
    return create([])
  } catch (error) {
    throw refusedMount(host, device, request, error).error
  }
}

function partOf({ inodes, mounts }: Host, tree: Handle, subPath: string): Handle {
  const part = openInside(inodes, tree, subPath)
  try {
    if ((inodes.stat(part).mode & FILE_TYPE) !== DIRECTORY) {
      throw new Refusal(`subPath ${quoted(subPath)} is not a directory: of a disk or an image, name one`)
    }
    return mounts.cloneTree(part)
  } catch (error) {
    throw refusedPart(error, subPath)
  } finally {
    inodes.close(part)
  }
}

export const blocks: readonly VolumeKind[] = DISKS.map(block)
