import * as fs from 'node:fs'
import * as net from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { hasSocketListener } from '../../../src/kernel/linux/diagnosis.ts'
import { scratch } from '../../real-mounts/mapped-volume.ts'

it('hasSocketListener returns true for a Unix socket behind any link until its listener ends', async () => {
  const top = scratch()
  fs.mkdirSync(`${top}/run`)
  fs.symlinkSync('run', `${top}/link`)
  const socket = `${top}/run/nri.sock`
  expect(hasSocketListener(socket)).toBe(false)
  const server = net.createServer()
  onTestFinished(() => void server.close())
  let calls = 0
  server.on('connection', () => calls++)
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  expect([hasSocketListener(socket), hasSocketListener(`${top}/link/nri.sock`)]).toEqual([true, true])
  fs.linkSync(socket, `${top}/run/left.sock`)
  await new Promise((resolve) => server.close(resolve))
  expect(hasSocketListener(`${top}/run/left.sock`)).toBe(false)
  fs.writeFileSync(socket, '')
  expect([hasSocketListener(socket), calls]).toEqual([false, 0])
})
