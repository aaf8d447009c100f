import { resolve } from 'node:path'
import type { ByHandOrder } from '../apply/by-hand.ts'
import { Refusal, show } from '../protocol/refusal.ts'
import { type Given, isVerb, readArguments, type Verb } from './arguments.ts'

export type VolumeCommand =
  | { verb: 'plan' | 'apply'; directory: string; order: ByHandOrder }
  | { verb: 'restore'; directory: string }

/** What is about all of modekeep's mounts on the node. */
export type NodeCommand =
  /** @property metrics they are wanted instead: on stdout, or in this file */
  | { verb: 'status'; metrics?: { output: string | undefined } }
  /** @property kubelet where kubelet keeps its pods, if its own subPaths are to be mended too */
  | { verb: 'heal'; isDry: boolean; isWatching: boolean; kubelet: string | undefined }

/** A command that looks at, or changes, the node. */
export type Work = VolumeCommand | NodeCommand

export type Command = { verb: 'help'; topic: string | undefined } | { verb: 'version' } | Work

type VolumeVerb = VolumeCommand['verb']

/**
 * Reads an operator's arguments, the verb first.
 * @param workingDirectory what a relative DIR starts from; called only for one
 * @throws {Refusal} with every fault, for a usage error
 */
export function parseCommand(argv: readonly string[], workingDirectory: () => string): Command {
  const [verb = '', ...args] = argv
  switch (verb) {
    case 'help':
    case '--help':
    case '-h':
      return { verb: 'help', topic: args.find(isVerb) }
    case 'version':
    case '--version':
      return { verb: 'version' }
    default:
      if (!isVerb(verb)) throw new Refusal(`there is no verb ${show(verb)}: see "modekeep help"`)
      return workCommand(verb, args, workingDirectory)
  }
}

function workCommand(verb: Verb, args: string[], workingDirectory: () => string): Command {
  const { given, words, faults } = readArguments(verb, args)
  if (given.has('help') && faults.length === 0) return { verb: 'help', topic: verb }
  if (verb === 'status' || verb === 'heal') return nodeCommand(verb, given, words, faults)
  return volumeCommand(verb, given, words, faults, workingDirectory)
}

// Where kubelet keeps its pods unless told otherwise (--root-dir).
const KUBELET_DIRECTORY = '/var/lib/kubelet'

function nodeCommand(verb: NodeCommand['verb'], given: Given, words: readonly string[], faults: string[]): NodeCommand {
  const [word] = words
  if (word !== undefined) faults.push(`${verb} is about the whole node, got ${show(word)}: leave it out`)
  const directory = given.get('kubelet-dir')
  if (given.has('kubelet-dir') && !given.has('kubelet-subpaths')) {
    faults.push('--kubelet-dir is for --kubelet-subpaths: give both, or leave it out')
  }
  if (given.has('watch') && given.has('dry-run')) {
    faults.push('--watch mends and --dry-run does not: keep one')
  }
  if (given.has('output') && !given.has('prometheus')) {
    faults.push('--output is for --prometheus: give both, or leave it out')
  }
  if (given.has('json') && given.has('prometheus')) faults.push('--json and --prometheus are two forms: keep one')
  if (faults.length > 0) throw new Refusal(faults)
  if (verb === 'status') return given.has('prometheus') ? { verb, metrics: { output: given.get('output') } } : { verb }
  const kubelet = given.has('kubelet-subpaths') ? resolve(directory ?? KUBELET_DIRECTORY) : undefined
  return { verb, isDry: given.has('dry-run'), isWatching: given.has('watch'), kubelet }
}

function volumeCommand(
  verb: VolumeVerb,
  given: Given,
  directories: readonly string[],
  faults: string[],
  workingDirectory: () => string,
): VolumeCommand {
  const directory = directoryOf(verb, directories, workingDirectory, faults)
  if (verb !== 'restore' && !given.has('fsgroup'))
    faults.push('--fsgroup is missing: name the group, as in --fsgroup 2000')
  if (faults.length > 0) throw new Refusal(faults)
  if (verb === 'restore') return { verb, directory }
  const order: ByHandOrder = {
    group: Number(given.get('fsgroup')),
    access: given.get('group-access') === 'grant' ? 'grant' : 'keep',
    policy: given.get('policy') === 'Always' ? 'Always' : 'OnRootMismatch',
  }
  return { verb, directory, order }
}

function directoryOf(
  verb: VolumeVerb,
  directories: readonly string[],
  workingDirectory: () => string,
  faults: string[],
): string {
  const [directory = '', ...more] = directories
  if (directory === '' || more.length > 0) {
    faults.push(`${verb} takes one directory, got ${directory === '' ? 'none' : show(directories)}: name one`)
  } else if (/[\0\ufffd]/.test(directory)) {
    // Node decodes argv as UTF-8: the real name is lost.
    faults.push(`directory ${show(directory)} is not valid UTF-8: reach it by another name, such as a bind mount`)
  } else if (/(^|\/)(?!\.\.?(\/|$))[^/]+(\/+\.)*\/+\.\.(\/|$)/.test(directory)) {
    // Behind a symbolic link, ".." is not where the text says.
    faults.push(`directory ${show(directory)} goes down and up again: write it without ".."`)
  }
  if (faults.length > 0) return ''
  return directory.startsWith('/') ? resolve(directory) : resolve(workingDirectory(), directory)
}
