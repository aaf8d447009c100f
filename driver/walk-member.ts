import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { linuxInodes } from '../src/host/linux/inodes.ts'
import { runMember } from '../src/ownership/crew/member.ts'

// A thread of a large walk, see crew.ts.
if (parentPort) runMember(linuxInodes, parentPort, receiveMessageOnPort, workerData)
