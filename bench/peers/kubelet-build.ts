import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { run } from '../command.ts'
import { fetchSource } from './debian-source.ts'

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

  for (const [tool, version, where] of TOOLS) {
    if (!starts(tool, version)) throw new Error(`${tool} is missing: apt-get install ${where}`)
  }
  const directory = join(workDirectory, 'kubelet')
  try {
    say("fetching kubelet's source …")
    const { description, version } = fetchSource(directory)
    say(`building kubelet's walk, ${version} (once) …`)
    const binary = build(directory, description, main)
    const final = join(cache, `setownership-${version}-${made}`)
    fs.copyFileSync(binary, `${final}.new`)
    fs.renameSync(`${final}.new`, final)
    return final
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

const TOOLS = [
  ['go', 'version', 'golang-go'],
  ['dpkg-source', '--version', 'dpkg-dev'],
  ['apt-get', '--version', 'apt, on a Debian'],
] as const

function starts(tool: string, argument: string): boolean {
  try {
    run(tool, [argument])
    return true
  } catch {
    return false
  }
}

/** Go cannot use this package's go.mod with its vendored modules; with GOPATH it can. */
function build(directory: string, description: string, main: Buffer): string {
  const source = `${directory}/gopath/src/k8s.io/kubernetes`
  fs.mkdirSync(`${directory}/gopath/src/k8s.io`, { recursive: true })
  run('dpkg-source', ['--no-check', '-x', description, source], { cwd: directory })
  fs.mkdirSync(`${source}/cmd/setownership`)
  fs.writeFileSync(`${source}/cmd/setownership/main.go`, main)
  const go = { GO111MODULE: 'off', GOFLAGS: '', GOPATH: `${directory}/gopath`, GOCACHE: `${directory}/go-cache` }
  const env = { ...process.env, ...go, CGO_ENABLED: '0', PWD: source }
  run('go', ['build', '-o', `${directory}/setownership`, './cmd/setownership'], { cwd: source, env })
  return `${directory}/setownership`
}
