import { expect, it } from 'vitest'
import { assertContainerdVersion, parseSimulatedInstall } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'

it('a Debian suite with a newer version is refused, and the message names the requested version', () => {
  expect(() => assertContainerdVersion('sid', '2.1', '2.1.9+ds1-5')).not.toThrow()
  expect(() => assertContainerdVersion('sid', '2.1', '2.2.0-1')).toThrow(UnavailableError)
  expect(() => assertContainerdVersion('sid', '2.1', '2.10.0-1')).toThrow(
    'Debian sid has containerd 2.10.0-1 by now, and 2.1 is asked for',
  )
})

it('the packages that apt would install are read without the steps that configure them', () => {
  const printed = [
    'Reading package lists...',
    'The following NEW packages will be installed:',
    '  libc6 linux-image-6.12.117+deb13-arm64',
    'Inst libc6 (2.41-12 Debian:13/stable [amd64])',
    'Inst gcc-14-base:arm64 (14.2.0-19 Debian:13/stable [arm64])',
    'Inst linux-image-6.12.117+deb13-arm64 (6.12.117-1 Debian:13/stable [arm64]) []',
    'Conf libc6 (2.41-12 Debian:13/stable [amd64])',
  ]
  expect(parseSimulatedInstall(printed.join('\n'))).toEqual([
    'libc6',
    'gcc-14-base',
    'linux-image-6.12.117+deb13-arm64',
  ])
})
