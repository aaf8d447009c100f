import { type PlanCommand, type PlanDocument, plan as run } from '../actions/plan.ts'
import { planLines } from '../text/plan.ts'
import type { Work } from './form.ts'
import { orderOf, WALK_OPTIONS } from './order.ts'

export const plan: Work<PlanCommand, PlanDocument> = {
  operands: 'DIR',
  needs: '--fsgroup G',
  summary: 'print what apply and kubelet would change',
  text: [
    "Prints what apply would change in DIR, and what kubelet's own walk would change: counts, and the first changes " +
      'as ls -l shows them before and after. Changes nothing, not even an access time.',
  ],
  options: WALK_OPTIONS,
  completes: 'directories',
  examples: ['modekeep plan /srv/volumes/data --fsgroup 2000 --fs-group-change-policy Always'],
  isLooking: true,
  isForAnyNamespace: true,
  read: (args) => ({ verb: 'plan', ...orderOf('plan', args) }),
  run,
  lines: planLines,
}
