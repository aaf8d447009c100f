import * as fs from 'node:fs'
import { hashPackageNames, provideCached } from '../../scripts/fetch/cache.ts'
import { runCommand } from '../../scripts/fetch/command.ts'
import { unpackSuitePackages } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'

/** The oldest suite whose policy has the domains of kubelet and of container engines. */
const POLICY_SUITE = 'trixie'
const POLICY_PACKAGE = 'selinux-policy-default'
/** The compiler of policies with its libraries, the C library and the programs that it starts. */
const COMPILER_PACKAGES = [
  ...['policycoreutils', 'selinux-utils', 'libsemanage-common', 'libsemanage2', 'libsepol2', 'libselinux1'],
  ...['libaudit1', 'libcap-ng0', 'libpcre2-8-0', 'libbz2-1.0', 'libc6', 'libgcc-s1'],
]
/** The newest format that Linux 6.1 loads. */
const POLICY_FORMAT = 33
/** The lab's own rules. */
const LAB_MODULE = `${import.meta.dirname}/security/modekeep_lab.cil`

/**
 * Debian's SELinux policy with the lab's rules, compiled into the cache in half a minute. Nothing is installed.
 * @returns a directory with `policy`, which a kernel loads, and `file_contexts`
 * @throws {UnavailableError} where the packages cannot be fetched, or not be compiled
 */
export function provideSelinuxPolicy(): string {
  const packages = [POLICY_PACKAGE, ...COMPILER_PACKAGES]
  const rules = fs.readFileSync(LAB_MODULE, 'utf8')
  return provideCached(`selinux-${POLICY_SUITE}-${hashPackageNames([...packages, rules])}`, (directory) => {
    const root = `${directory}.root`
    const versions = unpackSuitePackages(POLICY_SUITE, packages, root)
    try {
      compilePolicy(root)
    } catch (error) {
      throw new UnavailableError(`${POLICY_PACKAGE} cannot be compiled: ${(error as Error).message}`)
    }
    fs.mkdirSync(directory)
    const compiled = `${root}/etc/selinux/default`
    fs.copyFileSync(`${compiled}/policy/policy.${POLICY_FORMAT}`, `${directory}/policy`)
    fs.copyFileSync(`${compiled}/contexts/files/file_contexts`, `${directory}/file_contexts`)
    fs.writeFileSync(`${directory}/versions.json`, JSON.stringify({ packageVersion: versions[POLICY_PACKAGE] }))
  })
}

/** Compiles all modules of the package and the lab's, in a root that has the compiler. */
function compilePolicy(root: string): void {
  for (const directory of ['bin', 'sbin', 'lib', 'lib64'])
    if (!fs.existsSync(`${root}/${directory}`)) fs.symlinkSync(`usr/${directory}`, `${root}/${directory}`)
  for (const directory of ['tmp', 'var/lib/selinux/default']) fs.mkdirSync(`${root}/${directory}`, { recursive: true })
  const settings = { 'module-store': 'direct', 'policy-version': POLICY_FORMAT, 'expand-check': 0 }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  fs.writeFileSync(`${root}/etc/selinux/semanage.conf`, lines.join(''))
  const modules = 'usr/share/selinux/default'
  fs.copyFileSync(LAB_MODULE, `${root}/${modules}/modekeep_lab.cil`)
  const names = fs.readdirSync(`${root}/${modules}`).filter((name) => /\.(pp\.bz2|cil)$/.test(name))
  const installs = names.map((name) => `--install=/${modules}/${name}`)
  runCommand('chroot', [
    root,
    '/usr/sbin/semodule',
    '--noreload',
    '--disable_dontaudit',
    '--store=default',
    ...installs,
  ])
}
