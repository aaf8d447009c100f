import { spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline/promises'
import { TEST_PACKAGES } from './packages.ts'

// biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own form
const DPKG_QUERY_FORMAT = '${Package} ${db:Status-Status}\n'
const PACKAGE_INSTALLER_SCRIPT = `${import.meta.dirname}/install-packages.sh`

/**
 * As root where apt-get is there, installs what the tests need and is missing, after naming it; on a terminal it asks first.
 * MODEKEEP_TEST_INSTALL=no forbids it. Elsewhere it only names what is missing.
 * @throws {Error} when apt-get fails
 */
export async function installTestPackages(isRoot: boolean): Promise<void> {
  const missing = listMissingPackages()
  if (missing.length === 0) return
  const names = missing.join(' ')
  if (!isRoot || process.env.MODEKEEP_TEST_INSTALL === 'no' || !(await isInstallationConfirmed(names))) {
    console.log(`Packages are missing, and the tests that need them are skipped. To run them: apt-get install ${names}`)
    return
  }
  console.log(`Installing packages that the tests need (MODEKEEP_TEST_INSTALL=no forbids it): ${names}`)
  const { status, error } = spawnSync(PACKAGE_INSTALLER_SCRIPT, missing, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (error) throw error
  if (status !== 0) {
    throw new Error(
      `apt-get could not install ${names}; with MODEKEEP_TEST_INSTALL=no the tests that need them are skipped`,
    )
  }
}

/** Those of the list that dpkg does not have; none where there is no dpkg, whose names of packages these are. */
function listMissingPackages(): string[] {
  const names = TEST_PACKAGES.map(({ name }) => name)
  const { stdout, error } = spawnSync('dpkg-query', ['-W', '-f', DPKG_QUERY_FORMAT, ...names], {
    encoding: 'utf8',
  })
  if (error || spawnSync('apt-get', ['--version']).error) return []
  const installed = new Set(stdout.split('\n').filter((line) => line.endsWith(' installed')))
  return names.filter((name) => !installed.has(`${name} installed`))
}

async function isInstallationConfirmed(names: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return true
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const answer = await terminal.question(`The tests need packages that are missing: ${names}\nInstall them? [Y/n] `)
    return !/^n/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}
