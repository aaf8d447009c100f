import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ARCHITECTURES, type Architecture } from '../../scripts/build/runtime.ts'
import { LAB_KERNELS } from './kernels.ts'

export interface LabOptions {
  /** The versions of the kernels to boot, as `LAB_KERNELS` has them. */
  kernels: string[]
  /** The processors of the guests. User-mode Linux has x64 alone. */
  architectures: Architecture[]
  /** Only boots whose name is in this list; empty for all. */
  boots: BootName[]
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

export const BOOT_NAMES = ['cases', 'apparmor', 'selinux', 'power', 'project', 'upgrade', 'debian'] as const
export type BootName = (typeof BOOT_NAMES)[number]

export const USAGE = `Usage: npm run test:vm -- [OPTION]...
Boots other kernels (Debian's user-mode-linux, no KVM needed) and runs tests of
the built executable in them. The boot "debian" runs a short list on the kernels
of Debian's linux-image, which QEMU emulates. Needs root. Nothing is installed:
packages are fetched with apt and cached.

  --kernel LIST     only these kernels, like 6.1,7.2 (${LAB_KERNELS.map(({ version }) => version).join(', ')})
  --boot LIST       only these: ${BOOT_NAMES.join(', ')}
  --arch LIST       only guests with these processors: ${ARCHITECTURES.join(', ')}
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
      arch: text,
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
  const options = {
    kernels: readList('--kernel', values.kernel, versions, isQuick ? [QUICK_KERNEL] : versions),
    architectures: readList('--arch', values.arch, ARCHITECTURES, isQuick ? ['x64'] : ARCHITECTURES),
    boots: readList('--boot', values.boot, BOOT_NAMES, isQuick ? ['cases'] : []),
    only: values.only,
    isQuick,
    logs: values.logs && resolve(values.logs),
    results: values.results && resolve(values.results),
  }
  const emulatedBootReason = getEmulatedBootReason(options)
  const impossible = options.boots.find((name) => name !== 'debian')
  if (emulatedBootReason !== '' && impossible !== undefined) {
    const chosen = values.boot === '' ? '--quick' : `--boot "${impossible}"`
    throw new Error(`${chosen} ${emulatedBootReason}: use --boot debian`)
  }
  return options
}

/** Returns why the options leave no kernel of user-mode Linux, or ''. */
function getEmulatedBootReason({ architectures, kernels }: LabOptions): string {
  if (!architectures.includes('x64')) return `needs x64, and --arch has ${architectures.join()} alone`
  const isOld = LAB_KERNELS.every(({ version, isTooOld }) => isTooOld || !kernels.includes(version))
  return isOld ? `needs Linux 5.12 or newer, and --kernel has ${kernels.join()} alone` : ''
}

function readList<T extends string>(
  option: string,
  given: string,
  possible: readonly T[],
  standard: readonly T[],
): T[] {
  if (given === '') return [...standard]
  return given.split(',').map((value) => {
    const known = possible.find((name) => name === value)
    if (known === undefined)
      throw new Error(`${option} ${JSON.stringify(value)} is unknown: use ${possible.join(', ')}`)
    return known
  })
}

/** Returns whether the options choose a boot. */
export function isBootSelected(options: LabOptions, name: BootName): boolean {
  const { boots } = options
  return (boots.length === 0 || boots.includes(name)) && (name === 'debian' || getEmulatedBootReason(options) === '')
}
