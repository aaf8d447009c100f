import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { provideCached } from './cache.ts'
import { runCommand } from './command.ts'
import { provideDebianArchive } from './debian.ts'
import { type GoToolchain, getGoToolchain, unpackKubernetes } from './kubernetes-tree.ts'
import { unpackGoCompiler } from './packages.ts'
import { KUBERNETES_SOURCE_ARCHIVE } from './pinned.ts'

export const KUBERNETES_VERSION = '1.20.2'

/** Without it they take themselves for version 0.0.0. In a GOPATH a vendored package has this whole path. */
const VERSION_VARIABLE = 'k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion'
const VERSION_LINKER_FLAGS = ['-ldflags', `-s -w -X ${VERSION_VARIABLE}=v${KUBERNETES_VERSION}`]

/** A program to build inside of Kubernetes' source. */
export interface KubernetesProgram {
  /** The name of its package below `cmd`. */
  name: string
  /** Its main.go, where Kubernetes has none. */
  main?: Buffer
  flags?: readonly string[]
}

/** One of Kubernetes' own, which knows its version. */
export const createVersionedProgram = (name: string): KubernetesProgram => ({ name, flags: VERSION_LINKER_FLAGS })

/**
 * The path of a program, built from Debian's source package of Kubernetes if the cache has none of the same making.
 * @throws {Error} with the last words of what failed
 */
export function provideKubernetesProgram(program: KubernetesProgram, say: (text: string) => void): string {
  const { name, main = '', flags = [] } = program
  const making = [readModule('kubernetes.ts'), ...listTreeKeyParts(), flags.join(), main]
  return provideCached(`${name}-${KUBERNETES_VERSION}-${computeCacheKey(making)}`, (binary) => {
    const go = provideGoTree(say)
    say(`building ${name} (once, some minutes) …`)
    buildKubernetesProgram(program, go, binary)
  })
}

const computeCacheKey = (parts: readonly (string | Buffer)[]) =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 12)

/** Texts of modules, which are the same for each program that reads them. A function's own text depends on what loaded it. */
const readModule = (name: string) => fs.readFileSync(`${import.meta.dirname}/${name}`)
const listTreeKeyParts = () => [readModule('kubernetes-tree.ts'), KUBERNETES_SOURCE_ARCHIVE.sum]

/** The source, its compiler and what has been compiled of it: one for all programs, which share most of their packages. */
export function provideGoTree(say: (text: string) => void): GoToolchain {
  const tree = provideCached(
    `kubernetes-tree-${KUBERNETES_VERSION}-${computeCacheKey(listTreeKeyParts())}`,
    (directory) => {
      say("fetching Kubernetes' source and a compiler …")
      unpackGoCompiler(`${directory}/tools`)
      unpackKubernetes(directory, provideDebianArchive(KUBERNETES_SOURCE_ARCHIVE))
    },
  )
  return getGoToolchain(tree)
}

function buildKubernetesProgram(
  { name, main, flags = [] }: KubernetesProgram,
  { source, compiler, env }: GoToolchain,
  binary: string,
): void {
  const directory = main === undefined ? name : `modekeep-${process.pid}-${name}`
  if (main !== undefined) {
    fs.mkdirSync(`${source}/cmd/${directory}`)
    fs.writeFileSync(`${source}/cmd/${directory}/main.go`, main)
  }
  try {
    const compile = [compiler, 'build', ...flags, '-o', binary, `./cmd/${directory}`]
    // It is not to go on alone when this process is killed.
    runCommand('setpriv', ['--pdeathsig', 'KILL', ...compile], { cwd: source, env })
  } finally {
    if (main !== undefined) fs.rmSync(`${source}/cmd/${directory}`, { recursive: true })
  }
}
