import * as fs from 'node:fs'
import { release } from 'node:os'
import type { Diagnosis } from '../diagnosis.ts'
import { createNodeFiles } from '../node-files.ts'
import { isListening } from './listening.ts'
import { probeFeatures } from './probe.ts'
import { findProgram, SYSTEM_PATH } from './programs.ts'
import { selfTest } from './self-test.ts'

export const linuxDiagnosis: Diagnosis = {
  features: probeFeatures,
  release,
  selfTest,
  findProgram: (program) => findProgram(program, SYSTEM_PATH),

  space(path) {
    const { bsize, bavail, files, ffree } = fs.statfsSync(path)
    return { bytes: bsize * bavail, inodes: files === 0 ? undefined : ffree }
  },

  isSameFile: createNodeFiles(fs).isSame,
  isListening,
}
