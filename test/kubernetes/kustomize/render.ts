import { spawnSync } from 'node:child_process'
import { parseAllDocuments } from 'yaml'
import { renderHere } from './small.ts'

/** A resource as it would be sent to the cluster. */
// biome-ignore lint/suspicious/noExplicitAny: manifests of every kind, which the schemas check.
export type Resource = Record<string, any>

const PROGRAMS = [
  ['kustomize', 'build'],
  ['kubectl', 'kustomize'],
] as const

/** The machine's own kustomize, as a command, or undefined. Without options it reads nothing outside of local files. */
export const KUSTOMIZE = PROGRAMS.find(([program, verb]) => spawnSync(program, [verb, '--help']).status === 0)

export const RENDERER = KUSTOMIZE?.join(' ') ?? 'test/kubernetes/kustomize/small.ts (no kustomize and no kubectl here)'

/** What a kustomization gives, by kustomize where the machine has it, else by a small renderer of the parts used here. */
export function render(directory: string): Resource[] {
  return KUSTOMIZE === undefined ? renderHere(directory) : renderByKustomize(directory)
}

/** @throws {Error} with its last words */
export function renderByKustomize(directory: string): Resource[] {
  const [program, verb] = KUSTOMIZE ?? ['kustomize', 'build']
  const { status, stdout, stderr } = spawnSync(program, [verb, directory], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${verb} ${directory}: ${stderr}`)
  return parseAllDocuments(stdout).map((document) => document.toJS())
}

/** The one resource of a kind. @throws {Error} if there are none or several */
export function one(resources: readonly Resource[], kind: string): Resource {
  const [found, ...others] = resources.filter((resource) => resource.kind === kind)
  if (found === undefined || others.length > 0)
    throw new Error(`${others.length + Number(!!found)} resources of ${kind}`)
  return found
}
