import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { unpackCompiler } from '../../test/kubelet/provide/packages.ts'
import { run } from '../command.ts'
import { fetchSource, unpackSource } from './debian-source.ts'

/**
 * The path of a program around kubelet's own walk. Built from Debian's source package in `workDirectory` if the cache
 * of the user has none that was made from the same text.
 * @throws {Error} with the reason, where it cannot be built
 */
export function kubeletWalk(workDirectory: string, say: (text: string) => void): string {
  const main = fs.readFileSync(resolve(import.meta.dirname, 'setownership.go'))
  const made = createHash('sha256').update(main).digest('hex').slice(0, 12)
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'modekeep')
  fs.mkdirSync(cache, { recursive: true })
  const cached = fs.readdirSync(cache).find((name) => name.startsWith('setownership-') && name.endsWith(`-${made}`))
  if (cached) return join(cache, cached)

  const directory = join(workDirectory, 'kubelet')
  try {
    say("fetching kubelet's source and a compiler …")
    unpackCompiler(`${directory}/tools`)
    const { version } = fetchSource(directory)
    say(`building kubelet's walk, ${version} (once) …`)
    const binary = build(directory, main)
    const final = join(cache, `setownership-${version}-${made}`)
    fs.copyFileSync(binary, `${final}.new`)
    fs.renameSync(`${final}.new`, final)
    return final
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

/** Go cannot use this package's go.mod with its vendored modules; with GOPATH it can. */
function build(directory: string, main: Buffer): string {
  const tools = `${directory}/tools`
  const source = `${directory}/gopath/src/k8s.io/kubernetes`
  const PATH = `${tools}/usr/bin:${process.env.PATH}`
  unpackSource(directory, source, { ...process.env, PATH })
  fs.mkdirSync(`${source}/cmd/setownership`)
  fs.writeFileSync(`${source}/cmd/setownership/main.go`, main)
  const go = { GO111MODULE: 'off', GOFLAGS: '', GOPATH: `${directory}/gopath`, GOCACHE: `${directory}/go-cache` }
  const env = { ...process.env, ...go, GOROOT: `${tools}/usr/lib/go-1.19`, CGO_ENABLED: '0', PWD: source }
  const compile = [`${tools}/usr/lib/go-1.19/bin/go`, 'build', '-o', `${directory}/setownership`, './cmd/setownership']
  // It is not to go on alone when this process is killed.
  run('setpriv', ['--pdeathsig', 'KILL', ...compile], { cwd: source, env })
  return `${directory}/setownership`
}
