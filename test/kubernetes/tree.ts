import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parse, stringify } from 'yaml'

const FOLDER = resolve(import.meta.dirname, '../../driver/kubernetes')

const ALONE = [
  [],
  ['components/before-1.30'],
  ['components/heal-devices'],
  ['components/without-heal'],
  ['device-plugin'],
  ['csi'],
  ['nri'],
  ['components/metrics'],
  ['components/uninstall'],
]
/** Lists of components that may be combined. */
export const COMPONENTS: string[][] = [
  ...ALONE,
  ['components/before-1.30', 'components/heal-devices', 'device-plugin', 'csi', 'nri'],
  ['components/before-1.30', 'components/heal-devices', 'device-plugin', 'csi', 'nri', 'components/uninstall'],
]

export interface Wishes {
  components?: readonly string[]
  image?: { newName?: string; newTag?: string }
  /** The text of the node's configuration, instead of the base's. */
  config?: string
  /** Strategic merge patches. */
  patches?: readonly object[]
}

/** The file of driver/kubernetes with this configuration. */
function configPatch(config: string): string {
  const patch = parse(fs.readFileSync(join(FOLDER, 'config.yaml'), 'utf8'))
  patch.spec.template.metadata.annotations['modekeep/config'] = config
  return stringify(patch)
}

const made: string[] = []
process.once('exit', () => {
  for (const directory of made) fs.rmSync(directory, { recursive: true, force: true })
})

/**
 * A kustomization as the README says to write one, on an overlay.
 * @param overlay and the components: paths below driver/kubernetes
 * @returns its directory, which goes with the process
 */
export function kustomization(overlay: string, { components = [], image, config, patches = [] }: Wishes): string {
  const directory = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'modekeep-kustomization-')))
  made.push(directory)
  const path = (name: string) => relative(directory, join(FOLDER, name))
  if (config !== undefined) fs.writeFileSync(join(directory, 'config.yaml'), configPatch(config))
  const text = stringify({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [path(overlay)],
    components: components.map(path),
    ...(image === undefined ? {} : { images: [{ name: 'modekeep', ...image }] }),
    patches: [
      ...(config === undefined ? [] : [{ path: 'config.yaml' }]),
      ...patches.map((patch) => ({ patch: stringify(patch) })),
    ],
  })
  fs.writeFileSync(join(directory, 'kustomization.yaml'), text)
  return directory
}
