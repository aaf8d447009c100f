import type { LogsCommand } from '../actions/logs.ts'
import type { Arguments, VerbForm } from './form.ts'

// As tail(1).
const LAST_WHEN_FOLLOWING = 10

export const logs: VerbForm<LogsCommand> = {
  operands: '',
  summary: "show what kubelet's calls and these commands did",
  text: [
    "Shows the node's log, the rotated files first: time, verb, outcome, duration and pod of each call, and why it " +
      'failed.',
  ],
  options: {
    follow: 'show new lines as they are written, through rotations; ends on Ctrl-C',
    lines: 'only the last N lines (default: all; with --follow 10)',
    pod: 'only the lines about one pod: its UID, or NAMESPACE/NAME',
    json: 'the lines as they were written, one JSON document each',
  },
  examples: ['modekeep logs --follow', 'modekeep logs --pod shop/cart-0 --lines 20'],
  read: ({ given }) => ({
    verb: 'logs',
    isFollowing: given.has('follow'),
    last: lastOf(given),
    pod: given.get('pod'),
  }),
}

function lastOf(given: Arguments['given']): number | undefined {
  const lines = given.get('lines')
  if (lines !== undefined) return Number(lines)
  return given.has('follow') ? LAST_WHEN_FOLLOWING : undefined
}
