import { ABOUT_VERBS } from './about.ts'
import type { VerbForm } from './form.ts'
import { INSTALL_VERBS } from './install.ts'
import { NODE_VERBS } from './node.ts'
import { VOLUME_VERBS } from './volume.ts'

export const VERBS = { ...VOLUME_VERBS, ...NODE_VERBS, ...INSTALL_VERBS, ...ABOUT_VERBS } as const

export type Verb = keyof typeof VERBS

export const VERB_NAMES = Object.keys(VERBS) as Verb[]

/** What kubelet calls, for the overview and the man page. */
export const KUBELETS_VERBS = ['init', 'mount DIR JSON', 'unmount DIR']

export function isVerb(verb: string): verb is Verb {
  return Object.hasOwn(VERBS, verb)
}

export function verbForm(verb: Verb): VerbForm {
  return VERBS[verb]
}
