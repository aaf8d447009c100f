import { onTestFinished } from 'vitest'
import { NodeDirectory } from './node-directory.ts'

export { BINARY } from './node-directory.ts'

/** A node of the test that is running, gone when that has finished. */
export class BinaryNode extends NodeDirectory {
  constructor() {
    super()
    onTestFinished(() => this.close())
  }
}
