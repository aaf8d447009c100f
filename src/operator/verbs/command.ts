import { resolve } from 'node:path'
import type { ByHandOrder } from '../../fs-group/by-hand.ts'
import { LONGEST_NAME } from '../../fuse-device/sockets.ts'
import { LONGEST_PATH } from '../../grpc/socket.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import { isVolumeIdentity } from '../../store/volume-record.ts'
import { type Given, readArguments } from './arguments.ts'
import { directoryOf } from './directory-argument.ts'
import { isVerb, VERB_NAMES, type Verb } from './index.ts'
import { type InstallCommand, installerCommand, type UninstallCommand } from './installer.ts'
import { nearest } from './suggest.ts'

/** A directory, or a volume by the name that it has in the records. */
export type Target = { directory: string } | { volume: string }

export type VolumeCommand =
  | { verb: 'plan' | 'apply'; directory: string; order: ByHandOrder }
  | { verb: 'restore'; target: Target; isDry: boolean; isForced: boolean }

/** What is about all of modekeep's mounts on the node. */
export type NodeCommand =
  /** @property metrics they are wanted instead: on stdout, or in this file */
  | { verb: 'status'; metrics: { output: string | undefined } | undefined }
  | { verb: 'doctor' }
  /** @property kubelet where kubelet keeps its pods, if its own subPath mounts are to be repaired too */
  | { verb: 'heal'; isDry: boolean; isWatching: boolean; kubelet: string | undefined }
  /** @property forget a volume to be given up */
  | { verb: 'gc'; isDry: boolean; forget: string | undefined }

/** @property last undefined: all lines */
export interface LogsCommand {
  verb: 'logs'
  isFollowing: boolean
  last: number | undefined
  pod: string | undefined
}

/** A command that looks at, or changes, the node. */
export type Work = VolumeCommand | NodeCommand

/** A command that says something of modekeep itself. */
export type About =
  | { verb: 'help'; topic: Verb | undefined; isManual: boolean }
  | { verb: 'version' }
  | { verb: 'completion'; shell: 'bash' | 'zsh' }

export interface PluginCommand {
  verb: 'device-plugin'
  /** How many containers may have the device at once. */
  devices: number
  /** Where kubelet.sock is. */
  directory: string
}

export type Command = About | LogsCommand | PluginCommand | InstallCommand | UninstallCommand | Work

/** What a command is about, for the log. */
export function subjectOf(command: Work): { directory?: string; volume?: string } {
  if ('directory' in command) return { directory: command.directory }
  return 'target' in command ? command.target : {}
}

/** Whether it may change something; others leave no line in the log. */
export function isChanging(command: Work): boolean {
  return !['plan', 'status', 'doctor'].includes(command.verb) && !('isDry' in command && command.isDry)
}

const OVERVIEW = { verb: 'help', topic: undefined, isManual: false } as const

/**
 * Reads an operator's arguments, the verb first.
 * @param workingDirectory what a relative DIR starts from; called only for one
 * @throws {Refusal} with every fault, for a usage error
 */
export function parseCommand(argv: readonly string[], workingDirectory: () => string): Command {
  const [word = '', ...args] = argv
  if (word === '--help' || word === '-h') return OVERVIEW
  if (word === '') throw new Refusal('there is no verb: see "modekeep help"')
  const verb = word === '--version' ? 'version' : word
  if (!isVerb(verb)) throw new Refusal(noVerb(verb))
  const { given, words, faults } = readArguments(verb, args)
  if (given.has('help') && faults.length === 0) return { verb: 'help', topic: verb, isManual: false }
  const command = read(verb, given, words, faults, workingDirectory)
  if (faults.length > 0 || command === undefined) throw new Refusal(faults)
  return command
}

function noVerb(word: string): string {
  const meant = nearest(word, VERB_NAMES)
  return `there is no verb ${quoted(word)}: ${meant === undefined ? '' : `did you mean ${meant}? `}see "modekeep help"`
}

/** @param faults what is found wrong is added to it */
function read(
  verb: Verb,
  given: Given,
  words: readonly string[],
  faults: string[],
  workingDirectory: () => string,
): Command | undefined {
  const isDry = given.has('dry-run')
  switch (verb) {
    case 'plan':
    case 'apply': {
      const directory = directoryOf(verb, words, workingDirectory, faults)
      if (!given.has('fsgroup')) faults.push('--fsgroup is missing: name the group, as in --fsgroup 2000')
      return { verb, directory, order: orderOf(given) }
    }
    case 'restore':
      return { verb, target: targetOf(words, workingDirectory, faults), isDry, isForced: given.has('force') }
    case 'help':
      return { verb, topic: topicOf(words, given.has('man'), faults), isManual: given.has('man') }
    case 'completion':
      return { verb, shell: shellOf(words, faults) }
    default:
      refuseWords(verb, words, faults)
  }
  switch (verb) {
    case 'status':
      return { verb, metrics: metricsOf(given, faults) }
    case 'heal':
      return { verb, isDry, isWatching: given.has('watch'), kubelet: kubeletOf(given, faults) }
    case 'gc':
      return { verb, isDry, forget: given.get('forget') }
    case 'device-plugin':
      return { verb, devices: Number(given.get('devices') ?? DEFAULT_DEVICES), directory: socketsOf(given, faults) }
    case 'install':
    case 'uninstall':
      return installerCommand(verb, given, workingDirectory)
    case 'logs':
      return { verb, isFollowing: given.has('follow'), last: lastOf(given), pod: given.get('pod') }
    default:
      return { verb }
  }
}

function orderOf(given: Given): ByHandOrder {
  return {
    group: Number(given.get('fsgroup')),
    access: given.get('group-access') === 'grant' ? 'grant' : 'keep',
    policy: given.get('fs-group-change-policy') === 'Always' ? 'Always' : 'OnRootMismatch',
  }
}

function targetOf(words: readonly string[], workingDirectory: () => string, faults: string[]): Target {
  const [word = ''] = words
  if (words.length === 1 && isVolumeIdentity(word)) return { volume: word }
  return { directory: directoryOf('restore', words, workingDirectory, faults) }
}

function metricsOf(given: Given, faults: string[]): { output: string | undefined } | undefined {
  const isWanted = given.has('prometheus')
  if (given.has('output') && !isWanted) faults.push('--output is for --prometheus: give both, or leave it out')
  if (given.has('json') && isWanted) faults.push('--json and --prometheus are two forms: keep one')
  return isWanted ? { output: given.get('output') } : undefined
}

function refuseWords(verb: Verb, [word]: readonly string[], faults: string[]): void {
  if (word === undefined) return
  faults.push(
    verb === 'version'
      ? `version takes no argument, got ${quoted(word)}: leave it out`
      : `${verb} is about the whole node, got ${quoted(word)}: leave it out`,
  )
}

function topicOf([word, second]: readonly string[], isManual: boolean, faults: string[]): Verb | undefined {
  if (word === undefined) return undefined
  if (second !== undefined) faults.push(`help is about one verb, got also ${quoted(second)}: leave it out`)
  if (isManual) faults.push(`--man is a page about all verbs, got ${quoted(word)}: leave one out`)
  if (isVerb(word)) return word
  faults.push(noVerb(word))
  return undefined
}

function shellOf(words: readonly string[], faults: string[]): 'bash' | 'zsh' {
  const [shell] = words
  if (words.length === 1 && (shell === 'bash' || shell === 'zsh')) return shell
  const got = words.length === 0 ? 'none' : quoted(words.length === 1 ? shell : words)
  faults.push(`completion takes the name of a shell, got ${got}: write bash or zsh`)
  return 'bash'
}

// Where kubelet keeps its pods unless told otherwise (--root-dir).
const KUBELET_DIRECTORY = '/var/lib/kubelet'

function kubeletOf(given: Given, faults: string[]): string | undefined {
  if (given.has('kubelet-dir') && !given.has('kubelet-subpaths')) {
    faults.push('--kubelet-dir is for --kubelet-subpaths: give both, or leave it out')
  }
  if (given.has('watch') && given.has('dry-run')) faults.push('--watch repairs and --dry-run does not: keep one')
  return given.has('kubelet-subpaths') ? kubeletDirectory(given) : undefined
}

function kubeletDirectory(given: Given): string {
  return resolve(given.get('kubelet-dir') ?? KUBELET_DIRECTORY)
}

const DEFAULT_DEVICES = 100

function socketsOf(given: Given, faults: string[]): string {
  const directory = `${kubeletDirectory(given)}/device-plugins`
  const longest = LONGEST_PATH - LONGEST_NAME - 1
  if (faults.length === 0 && Buffer.byteLength(directory) > longest) {
    faults.push(
      `--kubelet-dir ${quoted(given.get('kubelet-dir'))} is too long for a socket in it: use a path of less bytes`,
    )
  }
  return directory
}

// As tail(1).
const LAST_WHEN_FOLLOWING = 10

function lastOf(given: Given): number | undefined {
  const lines = given.get('lines')
  if (lines !== undefined) return Number(lines)
  return given.has('follow') ? LAST_WHEN_FOLLOWING : undefined
}
