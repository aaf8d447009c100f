import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fs from 'fs-extra'
import { stringify } from 'yaml'
import { createTarArchive } from '../../src/cli/output/tar.ts'
import { createTreeEntries } from '../archive/tree.ts'
import type { ReleaseFile } from './archive.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The variable with the address of the directory that publishes the release, which krew's manifest needs. */
export const RELEASE_URL_VARIABLE = 'MODEKEEP_RELEASE_URL'

export const KREW_MANIFEST_FILE = 'modekeep.krew.yaml'

const PLUGIN = 'kubectl-modekeep'
const COMPLETION = 'kubectl_complete-modekeep'

/**
 * Returns the archive of `kubectl modekeep` and, if the address of the release is known, krew's manifest for it.
 * @param timeSeconds the time of all files, in seconds since 1970
 * @param releaseUrl as parseReleaseUrl returns it
 */
export function createReleaseKubectlPlugin(
  version: string,
  timeSeconds: number,
  releaseUrl: string | undefined,
): ReleaseFile[] {
  const name = `modekeep-${version}-kubectl`
  const files = [
    { path: PLUGIN, bytes: readSource(`driver/kubernetes/${PLUGIN}`), isProgram: true },
    { path: COMPLETION, bytes: readSource(`driver/kubernetes/${COMPLETION}`), isProgram: true },
    { path: 'LICENSE', bytes: readSource('LICENSE') },
  ]
  const archive = {
    path: `${name}.tar.gz`,
    bytes: gzipSync(createTarArchive(createTreeEntries(name, files), timeSeconds), { level: 6 }),
  }
  if (releaseUrl === undefined) return [archive]
  const platform = {
    uri: `${releaseUrl}/${archive.path}`,
    sha256: createHash('sha256').update(archive.bytes).digest('hex'),
    bin: PLUGIN,
    files: files.map(({ path }) => ({ from: `${name}/${path}`, to: '.' })),
  }
  const manifest = createKrewManifest(version, releaseUrl, platform)
  return [archive, { path: KREW_MANIFEST_FILE, bytes: Buffer.from(stringify(manifest, { lineWidth: 0 })) }]
}

const readSource = (path: string): Buffer => fs.readFileSync(join(ROOT, path))

/** The platforms of the manifest. The plugin is a script, so all of them have one archive. */
const PLATFORMS = ['linux', 'darwin'].flatMap((os) => ['amd64', 'arm64'].map((arch) => ({ os, arch })))

/** The manifest's form: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/ */
function createKrewManifest(version: string, homepage: string, platform: object): object {
  return {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'modekeep' },
    spec: {
      version: `v${version}`,
      homepage,
      shortDescription: 'Shows and checks the volumes of modekeep',
      description: `Queries the pods of modekeep's DaemonSet, and shows the mounts, faults and logs of all nodes.
Restores what a walk changed on a node. Checks a namespace before it gets the label
modekeep/any-volume: which claims can be mapped, and which kubelet walks.
`,
      // krew installs a link to the plugin only.
      caveats: `To complete its words (kubectl 1.26 and newer):
  ln -s "\${KREW_ROOT:-$HOME/.krew}/store/modekeep/v${version}/${COMPLETION}" "\${KREW_ROOT:-$HOME/.krew}/bin/"
`,
      // Without aliases, which a reader of the file would have to resolve.
      platforms: PLATFORMS.map((matchLabels) => ({ selector: { matchLabels }, ...structuredClone(platform) })),
    },
  }
}

/**
 * Parses the address of the directory that publishes the release. Empty text is no address.
 * @returns the address without a slash at its end
 * @throws {Error} with the remedy, for an address from which krew fetches nothing
 */
export function parseReleaseUrl(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  const isUsable = url?.protocol === 'https:' && url.search === '' && url.hash === '' && url.username === ''
  if (isUsable && /^[!-~]+$/.test(text)) return url.href.replace(/\/+$/, '')
  // The message must not have a password.
  const shown = JSON.stringify(text.replace(/\/\/.*@/, '//'))
  throw new Error(
    `${RELEASE_URL_VARIABLE} is ${shown}: write the address of the release's directory, such as https://example.com/modekeep/v1.2.3`,
  )
}
