import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Crashing } from '../crash/every-call.ts'
import { cannotInject } from '../helpers/inject.ts'
import { refuseCalls } from '../helpers/refuse.ts'
import { PATIENCE } from '../helpers/size.ts'
import { ERRNO } from './fault.ts'

const title = `a system call that strace has no name for, failing${cannotInject && ` (skipped: ${cannotInject})`}`

describe.skipIf(cannotInject !== '')(title, () => {
  const errors = Object.entries(ERRNO).map(([name, errno]) => ({ name, errno }))

  it.each(errors)(
    'if fchmodat2 fails with $name, a walk reports the error, a restore stays pending, and the next calls succeed',
    async ({ name, errno }) => {
      const on = new Crashing('tmpfs')
      on.fresh()
      const { node } = on
      const wrapper = refuseCalls(['fchmodat2'], errno)
      node.wrapper = wrapper
      const failed = await node.call(...on.mountCall('a'))
      expect(failed).toEqual({ status: 'Failure', message: expect.stringMatching(`fchmodat2.*${name}`) })
      expect(node.layers('a')).toEqual([])
      on.expectSound(['a'])
      node.wrapper = []
      await on.mount('a')

      node.wrapper = wrapper
      await node.call('unmount', node.podDirectory('a'))
      on.expectSound(['a'])
      node.wrapper = []
      await on.mount('a')
      await on.unmount('a')
      // Warnings of the calls that failed are meant to be there.
      fs.rmSync(node.log)
      await on.unmount('a')
      on.expectOriginal()
    },
    PATIENCE,
  )
})
