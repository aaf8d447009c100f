import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { provideCached } from './cache.ts'
import { runCommand } from './command.ts'
import { KUBERNETES_VERSION, provideGoTree } from './kubernetes.ts'
import { provideGoBindata } from './packages.ts'
import { KUBERNETES_SOURCE_ARCHIVE } from './pinned.ts'

/** Kubernetes' own tests, and the program that is in most of their pods. */
export interface E2eTestSuite {
  'e2e.test': string
  agnhost: string
}

// As hack/generate-bindata.sh has it.
const IGNORED_FILE_OPTIONS = ['.jpg', '.png', '.md', 'BUILD(\\.bazel)?'].flatMap((pattern) => ['-ignore', pattern])
const EMBEDDED_DIRECTORIES = [
  'conformance/testdata',
  'e2e/testing-manifests',
  'e2e_node/testing-manifests',
  'images',
  'fixtures',
]
const GENERATED_GO_FILE = 'test/e2e/generated/bindata.go'

/**
 * Both programs, built from Debian's source package of Kubernetes if the cache has none of the same making.
 * @throws {Error} with the last words of what failed
 */
export function provideE2eSuite(say: (text: string) => void): E2eTestSuite {
  const key = createHash('sha256').update(
    [buildE2eSuite.toString(), KUBERNETES_SOURCE_ARCHIVE.sum, ...EMBEDDED_DIRECTORIES, ...IGNORED_FILE_OPTIONS].join(
      '\0',
    ),
  )
  const directory = provideCached(`e2e-${KUBERNETES_VERSION}-${key.digest('hex').slice(0, 12)}`, (made) => {
    buildE2eSuite(made, say)
  })
  return { 'e2e.test': `${directory}/e2e.test`, agnhost: `${directory}/agnhost` }
}

function buildE2eSuite(directory: string, say: (text: string) => void): void {
  const { source, compiler, env } = provideGoTree(say)
  say('building e2e.test and agnhost (once, some minutes) …')
  fs.mkdirSync(directory)
  const options = { cwd: source, env: { ...env, PATH: `${dirname(compiler)}:${env.PATH}` } }
  const folders = EMBEDDED_DIRECTORIES.map((folder) => `test/${folder}/...`)
  const made = `${directory}.bindata.go`
  runCommand(
    provideGoBindata(),
    ['-nometadata', '-o', made, '-pkg', 'generated', ...IGNORED_FILE_OPTIONS, ...folders],
    options,
  )
  fs.copyFileSync(made, `${source}/${GENERATED_GO_FILE}`)
  // They are not to go on alone when this process is killed.
  const go = (...args: string[]) => runCommand('setpriv', ['--pdeathsig', 'KILL', compiler, ...args], options)
  go('test', '-c', '-o', `${directory}/e2e.test`, './test/e2e')
  go('build', '-ldflags', '-s -w', '-o', `${directory}/agnhost`, './test/images/agnhost')
}
