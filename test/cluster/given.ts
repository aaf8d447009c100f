import * as fs from 'node:fs'
import { PROGRAMS, type Programs } from './programs.ts'

/**
 * Programs of another version of Kubernetes, from a directory; of etcd, containerd and runc its own, where it has them.
 * @throws {Error} which one is missing
 */
export function given(directory: string, { runtime, over, etcd, plugins }: Omit<Programs, 'kubernetes'>): Programs {
  const missing = PROGRAMS.filter((name) => !fs.existsSync(`${directory}/${name}`))
  if (missing.length > 0) throw new Error(`--kubernetes: ${directory} has no ${missing.join(', ')}`)
  const has = (name: string) => fs.existsSync(`${directory}/${name}`)
  const isRuntime = has('containerd') || has('runc')
  return {
    // containerd's shims and runc are found by PATH, so what is given comes first.
    runtime: { ...runtime, path: isRuntime ? `${directory}:${runtime.path}` : runtime.path },
    over,
    etcd: has('etcd') ? `${directory}/etcd` : etcd,
    plugins: has('bridge') ? directory : plugins,
    kubernetes: Object.fromEntries(PROGRAMS.map((name) => [name, `${directory}/${name}`])) as Programs['kubernetes'],
  }
}
