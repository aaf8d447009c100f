import { parentPort, workerData } from 'node:worker_threads'
import { watchMountTable } from '../src/kernel/linux/watches.ts'

// Entry of the thread that waits for changes of the mount table: see src/repair/watch.ts.
const reportMountTableChange = () => parentPort?.postMessage(undefined)
watchMountTable(workerData, reportMountTableChange, reportMountTableChange)
