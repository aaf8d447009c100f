import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import type { UnpackedSuite } from '../../../scripts/fetch/suite.ts'
import { layOver } from '../../kubelet/confine/own-place.ts'

// Each runtime finds them empty.
const OWN = ['/var/lib/kubelet', '/var/lib/modekeep', '/var/log/modekeep', '/etc/modekeep', '/var/log/pods']

const mount = (...args: string[]) => execFileSync('mount', args, { stdio: ['ignore', 'ignore', 'inherit'] })

/** Gives the machine a suite's programs, in namespaces of its own inside of those of makeOwnPlace. */
export function becomeSuite({ root }: UnpackedSuite, place: string, busybox: string): void {
  layOver(root)
  mount('-t', 'tmpfs', '-o', 'mode=0755', 'tmpfs', '/run')
  for (const path of OWN) {
    for (const directory of [path, `${place}${path}`]) fs.mkdirSync(directory, { recursive: true })
    // As kubelet makes its own.
    if (path === '/var/lib/kubelet') fs.chmodSync(`${place}${path}`, 0o750)
    mount('--bind', `${place}${path}`, path)
  }
  mount('--make-rshared', '/')
  execFileSync(busybox, ['ip', 'link', 'set', 'lo', 'up'])
}
