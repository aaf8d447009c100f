import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { cached } from './cache.ts'
import { run } from './command.ts'
import { debianArchive } from './debian.ts'
import { unpackCompiler } from './packages.ts'
import { KUBERNETES } from './pinned.ts'

export const KUBERNETES_VERSION = '1.20.2'

/** A program to build inside of Kubernetes' source. */
export interface Program {
  /** The name of its package below `cmd`. */
  name: string
  /** Its main.go, where Kubernetes has none. */
  main?: Buffer
  flags?: readonly string[]
}

/**
 * The path of a program, built from Debian's source package of Kubernetes if the cache has none of the same making.
 * @throws {Error} with the last words of what failed
 */
export function kubernetesProgram(program: Program, say: (text: string) => void): string {
  const { name, main = '', flags = [] } = program
  const making = [build.toString(), KUBERNETES.sum, flags.join(), main]
  const key = createHash('sha256').update(making.join('\0')).digest('hex').slice(0, 12)
  return cached(`${name}-${KUBERNETES_VERSION}-${key}`, (binary) => {
    say(`fetching Kubernetes' source and a compiler for ${name} …`)
    unpackCompiler(`${binary}.tools`)
    const archive = debianArchive(KUBERNETES)
    say(`building ${name} (once, some minutes) …`)
    build(program, archive, binary)
  })
}

/** Go cannot use this package's go.mod with its vendored modules; with GOPATH it can. */
function build({ name, main, flags = [] }: Program, archive: string, binary: string): void {
  const [work, compiler] = [`${binary}.build`, `${binary}.tools/usr/lib/go-1.19`]
  const source = `${work}/gopath/src/k8s.io/kubernetes`
  fs.mkdirSync(source, { recursive: true })
  run('tar', ['-xzf', archive, '-C', source, '--strip-components=1'])
  if (main !== undefined) {
    fs.mkdirSync(`${source}/cmd/${name}`)
    fs.writeFileSync(`${source}/cmd/${name}/main.go`, main)
  }
  const go = {
    GO111MODULE: 'off',
    GOFLAGS: '',
    GOPATH: `${work}/gopath`,
    GOCACHE: `${work}/go-cache`,
    CGO_ENABLED: '0',
  }
  const env = { ...process.env, ...go, GOROOT: compiler, PWD: source }
  const compile = [`${compiler}/bin/go`, 'build', ...flags, '-o', binary, `./cmd/${name}`]
  // It is not to go on alone when this process is killed.
  run('setpriv', ['--pdeathsig', 'KILL', ...compile], { cwd: source, env })
}
