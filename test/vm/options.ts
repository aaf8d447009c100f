import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { LAB_KERNELS } from './kernels.ts'

export interface LabOptions {
  /** The versions of the kernels to boot, as `LAB_KERNELS` has them. */
  kernels: string[]
  /** Only boots whose name is in this list; empty for all. */
  boots: string[]
  /** Only tests whose title matches this pattern of vitest; '' for all. */
  only: string
  /** A short run on one kernel, for the gate. */
  isQuick: boolean
  /** Where the consoles of the guests are put at the end; '' for nowhere. */
  logs: string
  /** Where the versions and the results are written (docs/results); '' for nowhere. */
  results: string
}

/** The kernel of the oldest supported Debian is the one of a quick run: it lacks the most. */
const QUICK_KERNEL = '6.1'

export const BOOT_NAMES = ['cases', 'apparmor', 'power', 'project', 'upgrade'] as const
export type BootName = (typeof BOOT_NAMES)[number]

export const USAGE = `Usage: npm run test:vm -- [OPTION]...
Boots other kernels (Debian's user-mode-linux, no KVM needed) and runs tests of
the built executable in them. Needs root. Nothing is installed: packages are
fetched with apt and cached.

  --kernel LIST     only these kernels, like 6.1,7.2 (${LAB_KERNELS.map(({ version }) => version).join(', ')})
  --boot LIST       only these: ${BOOT_NAMES.join(', ')}
  --only TEXT       only tests whose title matches this text
  --quick           the short run of the gate: cases on Linux ${QUICK_KERNEL}
  --logs DIR        put the consoles of the guests there
  --results FILE    write the versions and the results there (docs/results)

Example: npm run test:vm -- --kernel 6.12 --only NFS
`

/** @throws {Error} that names the option, its value and what is possible */
export function readOptions(args: readonly string[]): LabOptions | 'help' {
  const text = { type: 'string', default: '' } as const
  const flag = { type: 'boolean', default: false } as const
  const { values } = parseArgs({
    args: [...args],
    options: {
      kernel: text,
      boot: text,
      only: text,
      quick: flag,
      logs: text,
      results: text,
      help: flag,
    },
  })
  if (values.help) return 'help'
  const versions = LAB_KERNELS.map(({ version }) => version)
  const isQuick = values.quick
  return {
    kernels: readList('--kernel', values.kernel, versions, isQuick ? [QUICK_KERNEL] : versions),
    boots: readList('--boot', values.boot, BOOT_NAMES, isQuick ? ['cases'] : []),
    only: values.only,
    isQuick,
    logs: values.logs && resolve(values.logs),
    results: values.results && resolve(values.results),
  }
}

function readList(option: string, given: string, possible: readonly string[], standard: string[]): string[] {
  if (given === '') return standard
  const values = given.split(',')
  const unknown = values.find((value) => !possible.includes(value))
  if (unknown === undefined) return values
  throw new Error(`${option} ${JSON.stringify(unknown)} is unknown: use ${possible.join(', ')}`)
}
