import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { run } from '../../../bench/command.ts'
import { fetchSource } from '../../../bench/peers/debian-source.ts'
import { cached } from './cache.ts'
import { unpackCompiler } from './packages.ts'

// Without these the kubelet takes itself for version 0.0.0.
const VERSION = 'k8s.io/component-base/version.gitVersion=v1.20.2'
const FLAGS = ['-ldflags', `-s -w -X ${VERSION}`]

/**
 * The path of a kubelet, built from Debian 12's source package of Kubernetes if the cache has none.
 * @throws {Error} with the last words of what failed
 */
export function provideKubelet(say: (text: string) => void): string {
  const key = createHash('sha256').update(build.toString()).update(FLAGS.join()).digest('hex').slice(0, 8)
  return cached(`kubelet-1.20.2-${key}`, (binary) => {
    const [work, tools] = [`${binary}.build`, `${binary}.tools`]
    say("fetching kubelet's source and a compiler …")
    unpackCompiler(tools)
    fetchSource(work)
    say('building kubelet (once, some minutes) …')
    build(work, tools, binary)
  })
}

/** Go cannot use this package's go.mod with its vendored modules; with GOPATH it can. */
function build(work: string, tools: string, binary: string): void {
  const source = `${work}/gopath/src/k8s.io/kubernetes`
  const PATH = `${tools}/usr/bin:${process.env.PATH}`
  fs.mkdirSync(source, { recursive: true })
  const archive = (end: string) => `${work}/${fs.readdirSync(work).find((name) => name.endsWith(end))}`
  run('tar', ['-xf', archive('.orig.tar.gz'), '-C', source, '--strip-components=1'], { env: { ...process.env, PATH } })
  run('tar', ['-xf', archive('.debian.tar.xz'), '-C', source], { env: { ...process.env, PATH } })
  const patches = fs.readFileSync(`${source}/debian/patches/series`, 'utf8').split('\n')
  for (const name of patches.filter((line) => line !== '' && !line.startsWith('#'))) {
    run(`${tools}/usr/bin/patch`, ['-p1', '-s', '-i', `debian/patches/${name}`], { cwd: source })
  }
  const go = {
    GO111MODULE: 'off',
    GOFLAGS: '',
    GOPATH: `${work}/gopath`,
    GOCACHE: `${work}/go-cache`,
    CGO_ENABLED: '0',
  }
  const env = { ...process.env, ...go, GOROOT: `${tools}/usr/lib/go-1.19`, PWD: source }
  const compile = [`${tools}/usr/lib/go-1.19/bin/go`, 'build', ...FLAGS, '-o', binary, './cmd/kubelet']
  // It is not to go on alone when this process is killed.
  run('setpriv', ['--pdeathsig', 'KILL', ...compile], { cwd: source, env })
}
