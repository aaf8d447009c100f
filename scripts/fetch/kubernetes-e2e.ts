import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { cached } from './cache.ts'
import { run } from './command.ts'
import { goTree, KUBERNETES_VERSION } from './kubernetes.ts'
import { provideEmbedder } from './packages.ts'
import { KUBERNETES } from './pinned.ts'

/** Kubernetes' own tests, and the program that is in most of their pods. */
export interface Suite {
  'e2e.test': string
  agnhost: string
}

// As hack/generate-bindata.sh has it.
const IGNORED = ['.jpg', '.png', '.md', 'BUILD(\\.bazel)?'].flatMap((pattern) => ['-ignore', pattern])
const EMBEDDED = ['conformance/testdata', 'e2e/testing-manifests', 'e2e_node/testing-manifests', 'images', 'fixtures']
const GENERATED = 'test/e2e/generated/bindata.go'

/**
 * Both programs, built from Debian's source package of Kubernetes if the cache has none of the same making.
 * @throws {Error} with the last words of what failed
 */
export function provideSuite(say: (text: string) => void): Suite {
  const key = createHash('sha256').update([build.toString(), KUBERNETES.sum, ...EMBEDDED, ...IGNORED].join('\0'))
  const directory = cached(`e2e-${KUBERNETES_VERSION}-${key.digest('hex').slice(0, 12)}`, (made) => {
    build(made, say)
  })
  return { 'e2e.test': `${directory}/e2e.test`, agnhost: `${directory}/agnhost` }
}

function build(directory: string, say: (text: string) => void): void {
  const { source, compiler, env } = goTree(say)
  say('building e2e.test and agnhost (once, some minutes) …')
  fs.mkdirSync(directory)
  const options = { cwd: source, env: { ...env, PATH: `${dirname(compiler)}:${env.PATH}` } }
  const folders = EMBEDDED.map((folder) => `test/${folder}/...`)
  const made = `${directory}.bindata.go`
  run(provideEmbedder(), ['-nometadata', '-o', made, '-pkg', 'generated', ...IGNORED, ...folders], options)
  fs.copyFileSync(made, `${source}/${GENERATED}`)
  // They are not to go on alone when this process is killed.
  const go = (...args: string[]) => run('setpriv', ['--pdeathsig', 'KILL', compiler, ...args], options)
  go('test', '-c', '-o', `${directory}/e2e.test`, './test/e2e')
  go('build', '-ldflags', '-s -w', '-o', `${directory}/agnhost`, './test/images/agnhost')
}
