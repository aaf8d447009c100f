import { createOptionFault, type Fault } from '../../errors/fault.ts'
import { quoted } from '../../errors/refusal.ts'
import type { HelperInvocation } from '../../host/helpers.ts'
import type { Handle } from '../../host/host.ts'
import type { KindRequest } from '../../request/request.ts'
import { formatSource, REMOTE_EXAMPLES } from '../../request/source.ts'
import type { MountContext } from '../kind/kind.ts'
import { filterOwnOptions } from '../kind/options.ts'
import { mountStaged } from '../kind/staged.ts'

/** Finds the faults of a source on a server. */
export function findRemoteFaults({ source, subPath, fsType }: KindRequest, form: 'export' | 'share'): Fault[] {
  const faults: Fault[] = []
  if (subPath !== undefined) {
    faults.push(
      createOptionFault(
        'sub-path-unsupported',
        'subPath',
        `is ${quoted(subPath)}`,
        `of ${fsType} the source names the directory, add it there`,
      ),
    )
  }
  if (source.type === form) return faults
  const what = source.type === 'none' ? 'is missing' : `is ${quoted(formatSource(source))}`
  return [
    ...faults,
    createOptionFault(
      'source-invalid',
      'source',
      what,
      `write it like ${REMOTE_EXAMPLES[form]}, without "..", "." or a comma`,
    ),
  ]
}

/** A server decides about its files, but must not grant privileges on this node. */
export const POWERLESS = ['nosuid', 'nodev']

/** Mounts the source by mount.<fsType>. @param options added to those of the pod's author */
export function mountRemote(
  context: MountContext,
  options: string[],
  more: Partial<HelperInvocation>,
): Promise<Handle> {
  const { host, request, timeoutSeconds, secrets } = context
  const all = [...filterOwnOptions(request.mountOptions), ...options, ...(request.readOnly ? ['ro'] : [])]
  return mountStaged(context, (directory) =>
    host.helpers.run({
      program: `mount.${request.fsType}`,
      args: [formatSource(request.source) ?? '', directory, '-o', all.join(',')],
      timeoutSeconds,
      secrets: [...secrets.values()],
      ...more,
    }),
  )
}
