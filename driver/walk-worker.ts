import { parentPort, workerData } from 'node:worker_threads'
import { linuxInodes } from '../src/host/linux/inodes.ts'
import { runWorker } from '../src/ownership/workers/worker.ts'

// A thread of a large walk, see worker-pool.ts.
if (parentPort) runWorker(linuxInodes, parentPort, workerData)
