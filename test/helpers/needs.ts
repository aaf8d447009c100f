import * as fs from 'node:fs'
import { TestRunner } from 'vitest'
import { findPackageOfProgram } from '../../scripts/test/packages.ts'

/** Where Debian has programs, also for who is not root. */
const PLACES = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin']

export function isInstalled(program: string): boolean {
  return PLACES.some((place) => fs.existsSync(`${place}/${program}`))
}

/** Why tests that need these programs cannot run here, with the packages to install; empty where they can. */
export function explainMissing(...programs: string[]): string {
  const missing = programs.filter((program) => !isInstalled(program))
  if (missing.length === 0) return ''
  const packages = [...new Set(missing.map(findPackageOfProgram))]
  return `needs ${missing.join(', ')}: apt-get install ${packages.join(' ')}`
}

/** Why tests that mount, with these programs, cannot run here; empty where they can. */
export function cannotMountWith(...programs: string[]): string {
  return process.getuid?.() === 0 ? explainMissing(...programs) : 'mounts need root; run "sudo npm test"'
}

/** A title that says why its tests cannot run here: the closing line lists it. */
export function addSkipReason(title: string, cannot: string): string {
  return cannot === '' ? title : `${title} (skipped: ${cannot})`
}

/** The program, unless it is missing: then the test that is running ends, skipped, with the package to install. */
export function requireProgram(program: string): string {
  const why = explainMissing(program)
  if (why === '') return program
  TestRunner.getCurrentTest()?.context.skip(why)
  throw new Error(why)
}
