import { resolve } from 'node:path'
import { quoted } from '../../errors/refusal.ts'
import { isVolumeId } from '../../store/volume-id.ts'
import { isVolumePrefix, type TargetOperand, trimEllipsis } from '../actions/target.ts'
import type { VerbArguments } from './form.ts'
import type { OptionName } from './options.ts'

/** Reads the one directory that a verb takes, as an absolute, normalized path. */
export function readDirectoryOperand(verb: string, { words, workingDirectory, faults }: VerbArguments): string {
  const wrong = findDirectoryFault(verb, words)
  if (wrong !== undefined) faults.push(wrong)
  return faults.length > 0 ? '' : resolve(makeAbsolute(words[0] ?? '', workingDirectory))
}

/** Reads a volume by its name or the beginning of it, or a directory like `readDirectoryOperand`. */
export function readTargetOperand(verb: string, args: VerbArguments): TargetOperand {
  const word = trimEllipsis(args.words[0] ?? '')
  const isOne = args.words.length === 1
  // A complete volume name is never taken for a directory.
  if (isOne && isVolumeId(word)) return { beginning: word, directory: undefined }
  const directory = readDirectoryOperand(verb, args)
  return isOne && isVolumePrefix(word) ? { beginning: word, directory } : { directory }
}

/** Reads the one file that a verb takes, as an absolute path that is not normalized. */
export function readFileOperand(verb: string, { words, workingDirectory, faults }: VerbArguments): string {
  const [file = '', ...more] = words
  if (file === '' || more.length > 0) {
    faults.push(`${verb} takes one file, got ${file === '' ? 'none' : quoted(words)}: name one`)
  } else if (/[\0\ufffd]/.test(file)) {
    faults.push(`file ${quoted(file)} is not valid UTF-8: give it another name`)
  }
  return faults.length > 0 ? '' : makeAbsolute(file, workingDirectory)
}

function findDirectoryFault(verb: string, [directory = '', ...more]: readonly string[]): string | undefined {
  if (directory === '' || more.length > 0) {
    const got = directory === '' ? 'none' : quoted([directory, ...more])
    return `${verb} takes one directory, got ${got}: name one`
  }
  // Node decodes argv as UTF-8, so the original bytes are lost.
  if (/[\0\ufffd]/.test(directory)) {
    return `directory ${quoted(directory)} is not valid UTF-8: reach it by another name, such as a bind mount`
  }
  // After a symbolic link, ".." is not the parent that the text names.
  if (/(^|\/)(?!\.\.?(\/|$))[^/]+(\/+\.)*\/+\.\.(\/|$)/.test(directory)) {
    return `directory ${quoted(directory)} goes down and up again: write it without ".."`
  }
  return undefined
}

/** Reads an option's path as an absolute path. It is not normalized, because ".." after a link is not its textual parent. */
export function readPathOption(name: OptionName, { given, workingDirectory }: VerbArguments): string | undefined {
  const path = given.get(name)
  return path && makeAbsolute(path, workingDirectory)
}

function makeAbsolute(path: string, workingDirectory: () => string): string {
  return path.startsWith('/') ? path : `${workingDirectory()}/${path}`
}

/** Reads kubelet's directory of pods and sockets; the default is that of kubelet's --root-dir. */
export function readKubeletDirectory({ given }: VerbArguments): string {
  return resolve(given.get('kubelet-dir') ?? '/var/lib/kubelet')
}
