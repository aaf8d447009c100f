import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { onTestFinished } from 'vitest'
import { parseMountinfo } from '../../src/mount-table/mountinfo.ts'
import { DriverNode } from './driver-node.ts'

export { BINARY } from './driver-node.ts'

/** A node that is gone with its test. */
export class BinaryNode extends DriverNode {
  constructor() {
    super(fs.mkdtempSync(`${tmpdir()}/modekeep-binary-`))
    onTestFinished(() => this.#close())
  }

  #close(): void {
    // The latest first: one may lie on another.
    for (const { mountPoint } of parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8')).reverse()) {
      if (mountPoint.startsWith(`${this.top}/`)) execFileSync('umount', ['--lazy', mountPoint])
    }
    fs.rmSync(this.top, { recursive: true, force: true })
  }
}
