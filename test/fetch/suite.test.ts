import { expect, it } from 'vitest'
import { mustBe } from '../../scripts/fetch/suite.ts'
import { Unavailable } from '../../scripts/fetch/unavailable.ts'

it('a Debian suite with a newer version is refused, and the message names the requested version', () => {
  expect(() => mustBe('sid', '2.1', '2.1.9+ds1-5')).not.toThrow()
  expect(() => mustBe('sid', '2.1', '2.2.0-1')).toThrow(Unavailable)
  expect(() => mustBe('sid', '2.1', '2.10.0-1')).toThrow(
    'Debian sid has containerd 2.10.0-1 by now, and 2.1 is asked for',
  )
})
