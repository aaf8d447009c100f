import { once } from 'node:events'
import type { WatchNode } from '../src/cli/commands/heal.ts'
import { watch } from '../src/heal/watch.ts'
import { createWatchStop, DirectoryWatches, ProcessWatch } from '../src/host/linux/watches.ts'
import { errorCode } from '../src/host/system-error.ts'
import { keepHeapSmall } from './process-settings.ts'
import { createEndSignal } from './signals.ts'
import { startThread } from './thread.ts'

const FALLBACK_NOTE = 'until then some changes are only found every five minutes'

/** Heals after every change on this node, until at most a second after SIGTERM or SIGINT. */
export const watchNode: WatchNode = async (heal, { warn, failed }) => {
  const signal = createEndSignal()
  keepHeapSmall()
  let changed = () => {}
  const directories = new DirectoryWatches(
    () => changed(),
    (error) => warn(`cannot watch directories (${error.message}): ${formatWatchRemedy(error)}${FALLBACK_NOTE}`),
    false,
  )
  const daemons = new ProcessWatch(() => changed())
  const endThread = await watchMounts(
    () => changed(),
    (error) => warn(`cannot watch the mount table (${error.message}): restart it; ${FALLBACK_NOTE}`),
  )
  try {
    const listen = (callback: () => void) => {
      changed = callback
    }
    await watch(heal, {
      changes: { listen, follow: (paths) => directories.follow(paths), attend: (pids) => daemons.follow(pids) },
      signal,
      spent: readProcessorTimeMs,
      failed,
    })
  } finally {
    endThread()
    directories.close()
    daemons.close()
  }
}

function formatWatchRemedy(error: Error): string {
  const code = errorCode(error)
  if (code === 'ENOSPC') return 'raise the sysctl fs.inotify.max_user_watches; '
  return code === 'EMFILE' ? 'raise the sysctl fs.inotify.max_user_instances; ' : ''
}

/** Watches the mount table in a thread. Resolves once no change can be missed. @returns a function that ends the thread */
async function watchMounts(changed: () => void, failed: (error: Error) => void): Promise<() => void> {
  const stop = createWatchStop()
  const thread = startThread('mount-watch', stop.handle)
  // A process waits for its threads at exit, and this thread is blocked in a system call.
  process.once('exit', stop.now)
  thread.once('error', failed)
  thread.on('message', changed)
  await once(thread, 'message').catch(() => {})
  return () => {
    process.off('exit', stop.now)
    stop.now()
  }
}

function readProcessorTimeMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
