import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { getErrno, type Handle } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { readMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { write } from '../helpers/atomic-writer.ts'
import { createRuntimeBind } from '../helpers/runtime-bind.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'

// The kernel's own behaviour: why a container whose subPath lies in a flipped volume cannot start again.
onKernelStages('a bind mount whose source an atomic update has deleted', (open) => {
  let stage: Stage
  let volume: string
  let bound: string
  let target: string

  beforeEach(() => {
    stage = open()
    volume = `${stage.top}/volume`
    bound = `${stage.top}/bound`
    target = `${stage.top}/target`
    onTestFinished(() => {
      for (const path of [target, bound, bound]) if (isMounted(path)) execFileSync('umount', ['-l', path])
      stage.close()
    })
  })

  const row = (path: string) => readMountLayers(linuxHost, path).at(-1)
  const isMounted = (path: string) => row(path) !== undefined

  for (const [what, path] of [
    ['a file', 'config'],
    ['a directory', 'dir'],
  ] as const) {
    /** Bound while it was current; then the volume flips. */
    function bindAndFlip(): string {
      fs.mkdirSync(volume)
      const dated = write(volume, { config: 'one', 'dir/config': 'one' })
      for (const mountPoint of [bound, target]) {
        if (path === 'dir') fs.mkdirSync(mountPoint)
        else fs.writeFileSync(mountPoint, '')
      }
      execFileSync('mount', ['--bind', `${volume}/${path}`, bound])
      write(volume, { config: 'two', 'dir/config': 'two' })
      return dated.slice(stage.top.length)
    }

    it(`of ${what} is still mounted, and mountinfo marks it as deleted`, () => {
      const dated = bindAndFlip()
      expect(row(bound)?.root).toBe(`${dated}/${path}//deleted`)
      expect(fs.readFileSync(path === 'dir' ? `${volume}/dir/config` : `${volume}/config`, 'utf8')).toBe('two')
      if (path === 'dir') expect(fs.readdirSync(bound)).toEqual([])
      else expect(fs.readFileSync(bound, 'utf8')).toBe('one')
    })

    it(`of ${what} cannot be bound again, by path or through a handle: ENOENT`, () => {
      bindAndFlip()
      const bind = createRuntimeBind()
      expect(bind(bound, target)).toBe('ENOENT')
      expect(bind(bound, target, true)).toBe('ENOENT')
      const held = fs.openSync(bound, fs.constants.O_RDONLY)
      onTestFinished(() => fs.closeSync(held))
      expect(bind(`/proc/${process.pid}/fd/${held}`, target)).toBe('ENOENT')
      expect(isMounted(target)).toBe(false)
      // The target is not what fails.
      expect(bind(`${volume}/${path}`, target)).toBe('ok')
    })

    it(`of ${what} can be cloned, but the clone cannot be attached`, () => {
      bindAndFlip()
      const { inodes, mounts } = linuxHost
      const handles: Handle[] = []
      onTestFinished(() => {
        for (const handle of handles) inodes.close(handle)
      })
      const held = inodes.openLinkFree(bound)
      handles.push(held)
      const clone = mounts.cloneTree(held)
      handles.push(clone)
      mounts.setFlags(clone, { set: 0, clear: 0 })
      const on = inodes.openLinkFree(target)
      handles.push(on)
      expect(codeOf(() => mounts.attach(clone, on))).toBe('ENOENT')
    })

    it(`of ${what} accepts a mount beneath it, but not on top`, () => {
      bindAndFlip()
      const { inodes, mounts } = linuxHost
      expect(createRuntimeBind()(`${volume}/${path}`, bound)).toBe('ENOENT')
      const current = inodes.openLinkFree(fs.realpathSync(`${volume}/${path}`))
      const clone = mounts.cloneTree(current)
      const old = inodes.openLinkFree(bound)
      onTestFinished(() => {
        for (const handle of [current, clone, old]) inodes.close(handle)
      })
      expect(mounts.attachBeneath(clone, old)).toBe(true)
      execFileSync('umount', ['-l', bound])
      expect(row(bound)?.root).not.toMatch(/deleted/)
      expect(createRuntimeBind()(bound, target)).toBe('ok')
    })
  }
})

function codeOf(work: () => unknown): string | undefined {
  try {
    work()
    return 'ok'
  } catch (error) {
    return getErrno(error)
  }
}
