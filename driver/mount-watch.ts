import { parentPort, workerData } from 'node:worker_threads'
import { watchMountTable } from '../src/host/linux/mount-watch.ts'

// A thread that waits for changes of the mount table, see watch.ts.
const tell = () => parentPort?.postMessage(undefined)
watchMountTable(workerData, tell, tell)
