import { expect, it } from 'vitest'
import { assertContainerdVersion } from '../../scripts/fetch/suite.ts'
import { UnavailableError } from '../../scripts/fetch/unavailable.ts'

it('a Debian suite with a newer version is refused, and the message names the requested version', () => {
  expect(() => assertContainerdVersion('sid', '2.1', '2.1.9+ds1-5')).not.toThrow()
  expect(() => assertContainerdVersion('sid', '2.1', '2.2.0-1')).toThrow(UnavailableError)
  expect(() => assertContainerdVersion('sid', '2.1', '2.10.0-1')).toThrow(
    'Debian sid has containerd 2.10.0-1 by now, and 2.1 is asked for',
  )
})
