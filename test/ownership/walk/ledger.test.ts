import { expect, it } from 'vitest'
import { NO_RECORDED_ACLS } from '../../../src/ownership/inode/record.ts'
import { encodeInodeKeys } from '../../../src/ownership/journal/codec.ts'
import { Journal } from '../../../src/ownership/journal/journal.ts'
import { FirstLinkFilter } from '../../../src/ownership/walk/hard-links.ts'
import { WalkLedger } from '../../../src/ownership/walk/ledger.ts'
import { memoryHost } from '../../memory-host/index.ts'
import { MemoryWorld } from '../../memory-host/world.ts'
import { recordWith } from '../journal/place.ts'

it(`a walk's query of the journal returns "wait" for an inode while its recorded change is in progress`, () => {
  using journal = Journal.open(memoryHost(new MemoryWorld()), '/journal.db', 'fs-2-3')
  const ledger = new WalkLedger(journal, new FirstLinkFilter(), false)
  const record = recordWith(1, NO_RECORDED_ACLS)
  const query = () => ledger.query({ keys: encodeInodeKeys([record]), sightings: new Map() })
  const batch = ledger.record([record])
  expect(query()).toEqual(['wait'])
  ledger.settle(batch)
  expect(query()).toMatchObject([{ settled: true, isInProgress: false }])
})
