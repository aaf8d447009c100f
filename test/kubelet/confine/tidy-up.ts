import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Leftovers } from './caretaker.ts'
import { removeGroups } from './cgroups.ts'

// Runs until its parent has ended or crashed, and then until all is removed.
const { name, cgroups, directory }: Leftovers = JSON.parse(process.argv[2] ?? '')

/** A name that the kernel takes back with the process. False if another run has it. */
function isOnlyOne(): Promise<boolean> {
  const server = createServer().unref()
  return new Promise((done) => {
    server.once('error', () => done(false))
    server.listen(`\0${name}`, () => done(true))
  })
}

async function tidyUp(): Promise<void> {
  await removeGroups(cgroups)
  fs.rmSync(directory, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const gone = new Promise((done) => process.once('disconnect', done))
  for (let tries = 0; !(await isOnlyOne()); tries++) {
    // What is there is the other run's.
    if (!process.connected) return
    if (tries === 0) console.log('waiting for another run on this machine to end …')
    await sleep(1000)
  }
  await tidyUp()
  if (process.connected) process.send?.('ready')
  await gone
  await tidyUp()
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
