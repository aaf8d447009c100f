import { expect, it } from 'vitest'
import { NO_ACL } from '../../../src/ownership/inode/record.ts'
import { encodeKeys } from '../../../src/ownership/journal/codec.ts'
import { Journal } from '../../../src/ownership/journal/journal.ts'
import { FirstLinks } from '../../../src/ownership/walk/hard-links.ts'
import { Ledger } from '../../../src/ownership/walk/ledger.ts'
import { memoryHost } from '../../memory-host/index.ts'
import { MemoryWorld } from '../../memory-host/world.ts'
import { recordWith } from '../journal/place.ts'

it('the ledger returns "wait" for an inode while its recorded change is in progress', () => {
  using journal = Journal.open(memoryHost(new MemoryWorld()), '/journal.db', 'fs-2-3')
  const ledger = new Ledger(journal, new FirstLinks(), false)
  const record = recordWith(1, NO_ACL)
  const query = () => ledger.query({ keys: encodeKeys([record]), sightings: new Map() })
  const batch = ledger.record([record])
  expect(query()).toEqual(['wait'])
  ledger.settle(batch)
  expect(query()).toMatchObject([{ settled: true, isInProgress: false }])
})
