import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { findPackageOfProgram, TEST_PACKAGES } from '../../scripts/test/packages.ts'

const ROOT = resolve(import.meta.dirname, '../..')

it('the list of packages names each package once, and each program for one package', () => {
  const names = TEST_PACKAGES.map(({ name }) => name)
  const programs = TEST_PACKAGES.flatMap((one) => one.programs)
  expect(names).toEqual([...new Set(names)])
  expect(programs).toEqual([...new Set(programs)])
})

it('the list of packages has every program that a test needs', () => {
  const asked = fs.globSync('test/**/*.ts', { cwd: ROOT }).flatMap((file) => {
    const calls = fs
      .readFileSync(`${ROOT}/${file}`, 'utf8')
      .matchAll(/\b(?:requireProgram|explainMissing|cannotServe|cannotMountWith)\((?!\[)([^)]*)\)/g)
    return [...calls].flatMap(([, args = '']) => [...args.matchAll(/'([^']+)'/g)].map(([, program = '']) => program))
  })
  expect(asked.length).toBeGreaterThan(20)
  for (const program of asked) expect(findPackageOfProgram(program)).not.toBe('')
})

it('.ci/run has no package list of its own: it installs npm and runs commands of package.json', () => {
  const gate = fs.readFileSync(`${ROOT}/.ci/run`, 'utf8')
  expect(gate.match(/apt-get install[^\n]*/g)).toEqual([
    'apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null',
  ])
  const { scripts } = JSON.parse(fs.readFileSync(`${ROOT}/package.json`, 'utf8'))
  for (const [, name = ''] of gate.matchAll(/^npm (?:run )?(\S+)$/gm)) expect(scripts).toHaveProperty(name)
  expect([...gate.matchAll(/^npm .*$/gm)].map(String)).toEqual(['npm test', 'npm run test:user', 'npm run test:long'])
})
