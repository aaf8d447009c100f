import type { HealAction } from '../../heal/state.ts'
import { type HealCommand, type HealDocument, healNode as run } from '../actions/heal.ts'
import { parseListenAddress } from '../actions/health.ts'
import { alignColumns } from '../text/output.ts'
import type { SessionVerb } from './form.ts'
import { readKubeletDirectory } from './paths.ts'

export const heal: SessionVerb<HealCommand, HealDocument> = {
  summary: 'repair mounts whose source, daemon or layers changed',
  text: [
    "Repairs modekeep's mounts without waiting for kubelet's next call: a source that was replaced or deleted, a mount " +
      'that is missing or does not respond, layers mounted over it, interrupted calls, records of deleted pods, and ' +
      "kubelet's subPath mounts of modekeep's volumes whose source an update deleted.",
    'A mount in use is replaced without a gap. Mounts that modekeep does not know stay as they are.',
    "Containers that run without the group that they asked the runtime's plugin for (modekeep nri) are listed, with what to do.",
  ],
  options: {
    'dry-run': 'print what would be done; change nothing',
    watch: 'stay, and repair whenever the mount table or a source changes; ends on SIGTERM',
    'kubelet-subpaths':
      "also repair kubelet's own subPath mounts of ConfigMaps, Secrets and similar volumes whose source an update " +
      "deleted; without it the container's next start fails",
    'kubelet-dir': 'where kubelet keeps its pods (default: /var/lib/kubelet)',
    listen:
      'with --watch: answer HTTP there, /healthz while it runs and /readyz while its heals succeed; :PORT is every address',
    metrics: "with --listen: also answer /metrics, in Prometheus' text format (docs/metrics.md)",
    json: 'one JSON document on stdout; with --watch one line each time',
  },
  examples: ['modekeep heal --dry-run --kubelet-subpaths'],
  failure: 'a mount could not be repaired',
  read(args) {
    const { given, faults } = args
    const isDry = given.has('dry-run')
    const isWatching = given.has('watch')
    const isForKubelet = given.has('kubelet-subpaths')
    if (given.has('kubelet-dir') && !isForKubelet) {
      faults.push('--kubelet-dir is for --kubelet-subpaths: give both, or leave it out')
    }
    if (isWatching && isDry) faults.push('--watch repairs and --dry-run does not: keep one')
    if (given.has('listen') && !isWatching) faults.push('--listen is for --watch: give both, or leave it out')
    if (given.has('metrics') && !given.has('listen'))
      faults.push('--metrics is for --listen: give both, or leave it out')
    const where = parseListenAddress(given.get('listen') ?? '')
    const listen = where && { ...where, hasMetrics: given.has('metrics') }
    return { verb: 'heal', listen, isDry, isWatching, kubelet: isForKubelet ? readKubeletDirectory(args) : undefined }
  },
  run,
  /** Formats the unhealthy mounts, and the count of healthy ones. */
  lines({ isDry, mounts, subPaths, containers }) {
    const done = (action: HealAction) =>
      isDry && action !== 'none' && action !== 'failed' ? `would be ${action}` : action
    const rows = mounts
      .filter(({ state }) => state !== 'healthy')
      .map(({ state, action, directory, reason }) => [state, done(action), directory, reason])
    const others = subPaths.map(({ action, mountPoint, reason }) => ['stale', done(action), mountPoint, reason])
    const without = containers.map(({ state, action, pod, name, container, volume, reason, remedy }) => {
      const where = pod === '' ? `container ${container}` : `${pod}/${name} (volume ${volume})`
      return [state, action, where, `${reason}; ${remedy}`]
    })
    const healthy = `${mounts.length - rows.length} of ${mounts.length} mounts healthy`
    return [
      { text: `${healthy}${isDry ? '. Nothing was changed.' : ''}`, style: 'strong' },
      ...alignColumns([...rows, ...others, ...without]),
    ]
  },
  trouble: 'not every mount could be repaired: the reasons are above',
  hasTrouble: ({ mounts }) => mounts.some(({ action }) => action === 'failed'),
}
