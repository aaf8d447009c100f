import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { parseMountinfo } from '../../src/kernel/mount-table/mountinfo.ts'

/** A pod's directories as kubelet lays them out; every mount below `top` is for its test to remove. */
export interface KubeletPod {
  kubeletDir: string
  /** Makes a volume's directory, on disk or as a tmpfs of its own. */
  volume(plugin: string, name: string, on: 'disk' | 'tmpfs'): string
  /** Binds what a sub path leads to, as kubelet does; returns the mount point. */
  bind(volumeDirectory: string, subPath: string, options?: string): string
}

export function createKubeletPod(top: string): KubeletPod {
  const kubeletDir = `${top}/kubelet`
  const pod = `${kubeletDir}/pods/7d2e0c1a`
  let index = 0
  return {
    kubeletDir,

    volume(plugin, name, on) {
      const directory = `${pod}/volumes/kubernetes.io~${plugin}/${name}`
      fs.mkdirSync(directory, { recursive: true })
      if (on === 'tmpfs') execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory])
      return directory
    },

    bind(volumeDirectory, subPath, options) {
      const mountPoint = `${pod}/volume-subpaths/${volumeDirectory.split('/').at(-1)}/web/${index++}`
      const source = fs.realpathSync(`${volumeDirectory}/${subPath}`)
      fs.mkdirSync(dirname(mountPoint), { recursive: true })
      if (fs.statSync(source).isDirectory()) fs.mkdirSync(mountPoint)
      else fs.writeFileSync(mountPoint, '')
      execFileSync('mount', ['--bind', source, mountPoint])
      if (options) execFileSync('mount', ['-o', `remount,bind,${options}`, mountPoint])
      return mountPoint
    },
  }
}

/** Removes every mount below a directory, the latest first. */
export function unmountBelow(top: string): void {
  const rows = parseMountinfo(fs.readFileSync('/proc/self/mountinfo', 'utf8'))
  for (const { mountPoint } of rows.filter((row) => row.mountPoint.startsWith(`${top}/`)).reverse())
    execFileSync('umount', ['-l', mountPoint])
}
