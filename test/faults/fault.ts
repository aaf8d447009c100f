export const ERRORS = ['EIO', 'ENOSPC', 'EMFILE', 'ENOMEM', 'EINTR', 'EBUSY'] as const
export const FAULTS = ['KILL', ...ERRORS] as const
export type FaultName = (typeof FAULTS)[number]

/** What happens to a command in place of one of its system calls. */
export interface Fault {
  name: FaultName
  /** The call fails from then on, as a full disk stays full; otherwise it fails for good once. */
  lasts: boolean
}

// Nothing is interrupted or busy indefinitely.
const PASSING: readonly FaultName[] = ['KILL', 'EINTR', 'EBUSY']

export function faultsNamed(names: readonly FaultName[]): Fault[] {
  return names.flatMap((name) => [false, true].map((lasts) => ({ name, lasts }))).filter(isPossible)
}

function isPossible({ name, lasts }: Fault): boolean {
  return !lasts || !PASSING.includes(name)
}

export function inWords({ name, lasts }: Fault): string {
  return lasts ? `${name} from then on` : name
}

export const KILL: Fault = { name: 'KILL', lasts: false }

/** Linux' numbers, the same on all its architectures that modekeep is built for. */
export const ERRNO: Readonly<Record<Exclude<FaultName, 'KILL'>, number>> = {
  EINTR: 4,
  EIO: 5,
  ENOMEM: 12,
  EBUSY: 16,
  EMFILE: 24,
  ENOSPC: 28,
}
