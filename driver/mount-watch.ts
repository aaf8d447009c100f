import { parentPort, workerData } from 'node:worker_threads'
import { watchMountTable } from '../src/host/linux/watches.ts'

// Entry of the thread that waits for changes of the mount table: see src/heal/watch.ts.
const reportChange = () => parentPort?.postMessage(undefined)
watchMountTable(workerData, reportChange, reportChange)
