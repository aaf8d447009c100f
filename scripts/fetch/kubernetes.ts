import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { cached } from './cache.ts'
import { run } from './command.ts'
import { debianArchive } from './debian.ts'
import { type Go, goIn, unpackKubernetes } from './kubernetes-tree.ts'
import { unpackCompiler } from './packages.ts'
import { KUBERNETES } from './pinned.ts'

export const KUBERNETES_VERSION = '1.20.2'

/** Without it they take themselves for version 0.0.0. In a GOPATH a vendored package has this whole path. */
const VARIABLE = 'k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion'
const VERSIONED = ['-ldflags', `-s -w -X ${VARIABLE}=v${KUBERNETES_VERSION}`]

/** A program to build inside of Kubernetes' source. */
export interface Program {
  /** The name of its package below `cmd`. */
  name: string
  /** Its main.go, where Kubernetes has none. */
  main?: Buffer
  flags?: readonly string[]
}

/** One of Kubernetes' own, which knows its version. */
export const ownProgram = (name: string): Program => ({ name, flags: VERSIONED })

/**
 * The path of a program, built from Debian's source package of Kubernetes if the cache has none of the same making.
 * @throws {Error} with the last words of what failed
 */
export function kubernetesProgram(program: Program, say: (text: string) => void): string {
  const { name, main = '', flags = [] } = program
  const making = [build.toString(), goIn.toString(), unpackKubernetes.toString(), KUBERNETES.sum, flags.join(), main]
  return cached(`${name}-${KUBERNETES_VERSION}-${key(making)}`, (binary) => {
    const go = goTree(say)
    say(`building ${name} (once, some minutes) …`)
    build(program, go, binary)
  })
}

const key = (parts: readonly (string | Buffer)[]) =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 12)

/** The source, its compiler and what has been compiled of it: one for all programs, which share most of their packages. */
export function goTree(say: (text: string) => void): Go {
  const tree = cached(
    `kubernetes-tree-${KUBERNETES_VERSION}-${key([unpackKubernetes.toString(), KUBERNETES.sum])}`,
    (directory) => {
      say("fetching Kubernetes' source and a compiler …")
      unpackCompiler(`${directory}/tools`)
      unpackKubernetes(directory, debianArchive(KUBERNETES))
    },
  )
  return goIn(tree)
}

function build({ name, main, flags = [] }: Program, { source, compiler, env }: Go, binary: string): void {
  const directory = main === undefined ? name : `modekeep-${process.pid}-${name}`
  if (main !== undefined) {
    fs.mkdirSync(`${source}/cmd/${directory}`)
    fs.writeFileSync(`${source}/cmd/${directory}/main.go`, main)
  }
  try {
    const compile = [compiler, 'build', ...flags, '-o', binary, `./cmd/${directory}`]
    // It is not to go on alone when this process is killed.
    run('setpriv', ['--pdeathsig', 'KILL', ...compile], { cwd: source, env })
  } finally {
    if (main !== undefined) fs.rmSync(`${source}/cmd/${directory}`, { recursive: true })
  }
}
