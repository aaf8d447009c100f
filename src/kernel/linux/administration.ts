import * as fs from 'node:fs'
import { constants } from 'node:os'
import { execa } from 'execa'
import { createNodeFiles, type DriverResult, type DriverTrial, type NodeAdministration } from '../administration.ts'
import { CHILD_PROCESS_OPTIONS } from './child-process.ts'
import { linuxHost } from './index.ts'
import { tryLockDirectory } from './locks.ts'
import { signalProcessGroup } from './processes.ts'

export const linuxAdministration: NodeAdministration = {
  files: createNodeFiles(fs),
  host: linuxHost,
  tryLockDirectory,
  tryDriver,
}

async function tryDriver({
  command: [program, ...args],
  environment,
  seconds,
  stop,
}: DriverTrial): Promise<DriverResult> {
  const child = execa(program, args, {
    ...CHILD_PROCESS_OPTIONS,
    env: environment,
    stdin: 'ignore',
    all: true,
    buffer: true,
    // A driver's reply is one line. Of any other output the beginning is enough.
    maxBuffer: 1 << 20,
  })
  // Kills the driver and its children. Children in their own session may keep the output open, so it is closed here.
  const killDriver = () => {
    const { pid, stdio } = child.nodeChildProcess
    if (pid !== undefined) signalProcessGroup(pid, 'SIGKILL')
    for (const stream of stdio) stream?.destroy()
  }
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killDriver()
  }, seconds * 1000)
  stop.addEventListener('abort', killDriver)
  try {
    const { all = '', exitCode, signal, code, originalMessage } = await child
    const isStarted = code === undefined || exitCode !== undefined || signal !== undefined
    if (!isStarted) return { text: originalMessage ?? '', status: code === 'ENOENT' ? 127 : 126, isLate }
    return { text: all, status: exitCode ?? 128 + (signal ? constants.signals[signal as NodeJS.Signals] : 0), isLate }
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', killDriver)
  }
}
