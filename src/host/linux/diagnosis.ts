import { closeSync, openSync, readSync, statfsSync, statSync } from 'node:fs'
import type { Diagnosis } from '../diagnosis.ts'
import { findProgram, SYSTEM_PATH } from './helper-program.ts'
import { probeFeatures } from './probe.ts'
import { selfTest } from './self-test.ts'

const BLOCK = 1 << 20

export const linuxDiagnosis: Diagnosis = {
  features: probeFeatures,
  selfTest,
  findProgram: (program) => findProgram(program, SYSTEM_PATH),

  space(path) {
    const { bsize, bavail, files, ffree } = statfsSync(path)
    return { bytes: bsize * bavail, inodes: files === 0 ? undefined : ffree }
  },

  isSameFile(one, other) {
    const [a, b] = [statSync(one), statSync(other)]
    if (a.dev === b.dev && a.ino === b.ino) return true
    return a.size === b.size && hasSameBytes(one, other)
  },
}

function hasSameBytes(one: string, other: string): boolean {
  const [a, b] = [openSync(one, 'r'), openSync(other, 'r')]
  const [left, right] = [Buffer.alloc(BLOCK), Buffer.alloc(BLOCK)]
  try {
    for (;;) {
      const read = readSync(a, left)
      if (readSync(b, right) !== read || left.compare(right, 0, read, 0, read) !== 0) return false
      if (read === 0) return true
    }
  } finally {
    closeSync(a)
    closeSync(b)
  }
}
