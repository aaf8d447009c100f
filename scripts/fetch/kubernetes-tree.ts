import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { runCommand } from './command.ts'

/** A compiler, the environment it wants, and Kubernetes' source, in which it is called. */
export interface GoToolchain {
  source: string
  compiler: string
  env: NodeJS.ProcessEnv
}

/** How Go is called in such a tree: it cannot use this package's go.mod with its vendored modules; with GOPATH it can. */
export function getGoToolchain(tree: string): GoToolchain {
  const [source, compiler] = [`${tree}/gopath/src/k8s.io/kubernetes`, `${tree}/tools/usr/lib/go-1.19`]
  const settings = {
    GO111MODULE: 'off',
    GOFLAGS: '',
    GOPATH: `${tree}/gopath`,
    GOCACHE: `${tree}/go-cache`,
    CGO_ENABLED: '0',
    GOROOT: compiler,
    PWD: source,
  }
  return { source, compiler: `${compiler}/bin/go`, env: { ...process.env, ...settings } }
}

const UNUSED_SCHEMA_PATHS = /testdata|code-generator|sample|example/

/** Below `tree`, beside the compiler in `tools`: the source, with the package of schemas that the API server serves. */
export function unpackKubernetes(tree: string, archive: string): void {
  const { source, compiler, env } = getGoToolchain(tree)
  fs.mkdirSync(source, { recursive: true })
  runCommand('tar', ['-xzf', archive, '-C', source, '--strip-components=1'])
  const found = runCommand('grep', ['-rl', '--include=*.go', '+k8s:openapi-gen=true', 'pkg', 'staging/src'], {
    cwd: source,
  })
  const packages = new Set(
    found
      .split('\n')
      .filter((file) => file !== '' && !UNUSED_SCHEMA_PATHS.test(file))
      .map((file) => `k8s.io/kubernetes/${dirname(file).replace('staging/src', 'vendor')}`),
  )
  const options = { cwd: source, env }
  const generator = `${tree}/openapi-gen`
  runCommand(compiler, ['build', '-o', generator, './vendor/k8s.io/kube-openapi/cmd/openapi-gen'], options)
  const where = ['-p', 'k8s.io/kubernetes/pkg/generated/openapi', '-O', 'zz_generated.openapi']
  const header = ['-h', `${source}/vendor/k8s.io/code-generator/hack/boilerplate.go.txt`]
  runCommand(generator, ['-i', [...packages].sort().join(), ...where, ...header, '-r', `${tree}/openapi.report`], {
    ...options,
    // It runs the compiler, to find where its packages are.
    env: { ...env, PATH: `${dirname(compiler)}:${env.PATH}` },
  })
}
