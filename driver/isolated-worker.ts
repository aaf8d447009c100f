import type { Handle } from '../src/kernel/host.ts'
import { linuxHost } from '../src/kernel/linux/index.ts'
import { endProcessWithParent } from '../src/kernel/linux/processes.ts'
import { ISOLATED_TASK_DIRECTORY_FD } from '../src/kernel/worker-process.ts'
import { type IsolatedWorkFunction, runIsolatedWorkRequest } from '../src/worker/serve.ts'
import { writeWholeText } from './streams.ts'

async function importIsolatedWork(name: string): Promise<IsolatedWorkFunction> {
  switch (name) {
    case 'mount':
      return (await import('../src/mount/mount.ts')).runMountTask
    case 'unmount':
      return (await import('../src/mount/detach-volume.ts')).unmountServerVolumeInWorker
    case 'walk':
      return (await import('../src/fsgroup/walk-volume.ts')).walkVolumeForCaller
    case 'restore':
      return (await import('../src/fsgroup/restore-volume.ts')).restoreVolumeForCaller
    case 'root-bit':
      return (await import('../src/fsgroup/root-bit.ts')).removeSetGidForCaller
    case 'heal':
      return (await import('../src/repair/heal-record.ts')).runHealTask
    case 'sub-paths':
      return (await import('../src/repair/sub-paths.ts')).runSubPathHealTask
    case 'survey':
      return (await import('../src/cli/node-state/survey.ts')).surveyVolumeInWorker
    case 'sources':
      return (await import('../src/cli/doctor/configuration.ts')).checkSourcesInWorker
    case 'count':
      return (await import('../src/cli/node-state/recorded-walk.ts')).countInodesInWorker
    default:
      throw new Error(`no such work: ${name}`)
  }
}

/**
 * Runs one piece of work for the process that has started this one, and ends with it.
 * @param caller the process id that the caller passes
 * @returns false if another process has started this one
 */
export function runIsolatedWorker(caller: string | undefined): boolean {
  // Only a caller passes its own process id. If the caller has ended already, this process has another parent.
  if (caller !== String(process.ppid)) return false
  endProcessWithParent()
  const { stdin } = process
  const end = () => process.exit(1)
  const write = (text: string) => {
    if (!writeWholeText(text)) end()
  }
  let request = ''
  const read = (text: string) => {
    request += text
    if (!request.includes('\n')) return
    write('{}\n')
    stdin.off('data', read)
    // The caller's end closes the pipe, and Node reports that only to a reader.
    stdin.on('data', () => {})
    void runIsolatedWorkRequest(
      linuxHost,
      ISOLATED_TASK_DIRECTORY_FD as Handle,
      request,
      write,
      importIsolatedWork,
    ).then(() => process.exit(0), end)
  }
  stdin.setEncoding('utf8').on('data', read).on('end', end).on('error', end)
  return true
}
