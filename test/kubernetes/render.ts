import { parseAllDocuments } from 'yaml'
import { provideClients } from '../../scripts/fetch/clients.ts'
import { runCommand } from '../../scripts/fetch/command.ts'

/** A resource as it would be sent to the cluster. */
// biome-ignore lint/suspicious/noExplicitAny: manifests of every kind, which the schemas check.
export type Resource = Record<string, any>

/**
 * What a kustomization gives, by kubectl's own kustomize, which reads local files alone.
 * @throws {Error} with its last words
 */
export function render(directory: string): Resource[] {
  return parseAllDocuments(runCommand(provideClients().kubectl, ['kustomize', directory])).map((document) =>
    document.toJS(),
  )
}

/** The one resource of a kind. @throws {Error} if there are none or several */
export function one(resources: readonly Resource[], kind: string): Resource {
  const [found, ...others] = resources.filter((resource) => resource.kind === kind)
  if (found === undefined || others.length > 0)
    throw new Error(`${others.length + Number(!!found)} resources of ${kind}`)
  return found
}
