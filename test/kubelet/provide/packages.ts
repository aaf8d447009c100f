import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { run } from '../../../bench/command.ts'
import { cached } from './cache.ts'

const RUNTIME = ['containerd', 'runc', 'busybox-static']
const COMPILER = ['golang-1.19-go', 'golang-1.19-src', 'patch', 'xz-utils']

export interface Runtime {
  /** What PATH needs for containerd and its shims. */
  path: string
  /** Statically linked. */
  busybox: string
}

/** containerd, runc and busybox of Debian 12, unpacked into the cache: nothing is installed. */
export function provideRuntime(): Runtime {
  const root = provide(RUNTIME)
  return { path: `${root}/usr/sbin:${root}/usr/bin`, busybox: `${root}/bin/busybox` }
}

/** The root directory of Go and what unpacks a source package. */
export function provideCompiler(): string {
  return provide(COMPILER)
}

function provide(packages: readonly string[]): string {
  const key = createHash('sha256').update(packages.join()).digest('hex').slice(0, 8)
  return cached(`packages-${packages[0]}-${key}`, (root) => {
    const apt = `${root}.apt`
    for (const part of ['lists/partial', 'cache/archives/partial']) fs.mkdirSync(`${apt}/${part}`, { recursive: true })
    const settings = [
      `Dir::State::lists=${apt}/lists`,
      `Dir::Cache=${apt}/cache`,
      'APT::Sandbox::User=root',
      'Acquire::http::Timeout=30',
    ]
    const options = settings.flatMap((setting) => ['-o', setting])
    run('apt-get', [...options, '-q', 'update'])
    run('apt-get', [...options, '-q', 'download', ...packages], { cwd: apt })
    for (const name of fs.readdirSync(apt).filter((file) => file.endsWith('.deb'))) {
      run('dpkg-deb', ['-x', `${apt}/${name}`, root])
    }
  })
}
