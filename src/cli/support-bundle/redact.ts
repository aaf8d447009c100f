import { CREDENTIAL_OPTION_FORM } from '../../volume/cifs.ts'

const REDACTED = '[redacted]'
const REDACTED_FILE_NAME = '[file name left out]'

/** Names whose values are secrets, after their separators are removed. */
const SECRET_NAME_FORM =
  /passw|passphrase|^pass\d*$|pwd|secret|token|credential|^cred$|(?:api|access|private|account|session|encryption)key|authorization|^auth$|cookie|signature|^sas$|^sig$/

/** Keys of records, documents and log lines with names of files inside volumes, which are data of the volume's users. */
const FILE_NAME_KEYS: ReadonlySet<string> = new Set(['example', 'examples', 'skipped'])

function isSecretName(name: string): boolean {
  return SECRET_NAME_FORM.test(name.toLowerCase().replaceAll(/[-_.]/g, ''))
}

/** Also true for names of accounts, which are half of a credential. */
function isCredentialName(name: string): boolean {
  return isSecretName(name) || CREDENTIAL_OPTION_FORM.test(name.toLowerCase())
}

/**
 * Redacts a parsed JSON value: by the names of its keys, and by the form of its texts. Booleans stay, as they only say
 * whether a secret exists.
 */
export function redactValue(value: unknown, key = '', isSecret = false): unknown {
  if (typeof value === 'string') {
    if (isSecret || isCredentialName(key)) return REDACTED
    if (FILE_NAME_KEYS.has(key)) return REDACTED_FILE_NAME
    return /^\s*[[{]/.test(value) ? redactDocument(value) : redactText(value)
  }
  const isBelowSecret = isSecret || isSecretName(key)
  if (typeof value === 'number' || typeof value === 'bigint') return isBelowSecret ? REDACTED : value
  if (Array.isArray(value)) return value.map((item) => redactValue(item, key, isSecret))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [redactText(name), redactValue(item, name, isBelowSecret)]),
  )
}

/** Redacts a text that may be JSON. */
export function redactDocument(text: string): string {
  try {
    return JSON.stringify(redactValue(JSON.parse(text)))
  } catch {
    return redactText(text)
  }
}

/** Redacts a line of mountinfo. Its fields have no blanks, so a field is redacted without the ones after it. */
export function redactMountinfoLine(line: string): string {
  return line.split(' ').map(redactText).join(' ')
}

/** Redacts a text by the forms of secrets. When the end of a value is unclear, more is redacted. */
export function redactText(text: string): string {
  const redactions = [redactKeyBlocks, redactOptionValues, redactNamedValues, redactArguments, redactUserInfo]
  return redactions.reduce((redacted, redact) => redact(redacted), text)
}

const KEY_BLOCK_FORM = /-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gs
const JSON_WEB_TOKEN_FORM = /(?<![\w-])eyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g
const AUTHORIZATION_FORM = /\b(Bearer|Basic) +[\w+/.~-]{6,}=*/gi

function redactKeyBlocks(text: string): string {
  return text
    .replaceAll(KEY_BLOCK_FORM, REDACTED)
    .replaceAll(JSON_WEB_TOKEN_FORM, REDACTED)
    .replaceAll(AUTHORIZATION_FORM, `$1 ${REDACTED}`)
}

/** Matches `name=`. A name begins only where none runs, so that a long text takes linear time. */
const OPTION_NAME_FORM = /(?<![\w.-])([A-Za-z][\w.-]*) ?= ?/g

/** Redacts the values of `name=value`, as mount options, variables and queries of URLs have them. */
function redactOptionValues(text: string): string {
  return redactRanges(text, OPTION_NAME_FORM, ([, name = '']) =>
    isCredentialName(name) || name === 'key' ? findOptionValueEnd : undefined,
  )
}

/** Finds the end of an option's value. mount.cifs(8) doubles the commas of a password. */
function findOptionValueEnd(text: string, start: number): number {
  const quoted = findQuotedEnd(text, start)
  if (quoted !== undefined) return quoted
  let at = start
  while (at < text.length && text[at] !== '\n' && (text[at] !== ',' || text[at + 1] === ',')) {
    at += text[at] === ',' ? 2 : 1
  }
  return at
}

/** Matches `name:` and `"name":`, also with the backslashes of JSON inside JSON. */
const NAMED_VALUE_FORM = /(?<![\w./-])([A-Za-z][\w./-]*)(\\*["']?)\s*:\s*/g

/** Redacts the values of `"name": "value"` in parts of JSON, and of `name: value` as in YAML and HTTP headers. */
function redactNamedValues(text: string): string {
  return redactRanges(text, NAMED_VALUE_FORM, ([, name = '', quote]) => {
    if (!isCredentialName(name)) return undefined
    // In a sentence, a colon follows a name too.
    if (quote !== '' || name === 'secret' || !isSecretName(name)) return findQuotedEnd
    return (all, start) => findQuotedEnd(all, start) ?? findLineEnd(all, start)
  })
}

const ARGUMENT_NAME_FORM = /(?<!\S)--?([A-Za-z][\w-]*) +/g

/** Redacts the values of `--name value`. */
function redactArguments(text: string): string {
  return redactRanges(text, ARGUMENT_NAME_FORM, ([, name = '']) =>
    isSecretName(name) ? (all, start) => findQuotedEnd(all, start) ?? findWordEnd(all, start) : undefined,
  )
}

/** Finds the end of a value that begins at `start`; undefined if no value does. */
type ValueEndFinder = (text: string, start: number) => number | undefined

/** @param choose returns how the value after a match ends; undefined: the match has no secret */
function redactRanges(
  text: string,
  names: RegExp,
  choose: (match: RegExpExecArray) => ValueEndFinder | undefined,
): string {
  let redacted = ''
  let copied = 0
  for (const match of text.matchAll(names)) {
    if (match.index < copied) continue
    const start = match.index + match[0].length
    const end = choose(match)?.(text, start)
    if (end === undefined || end <= start) continue
    redacted += text.slice(copied, start) + REDACTED
    copied = end
  }
  return redacted + text.slice(copied)
}

/** Finds the end of a value in quotes, which may have backslashes before them. A value that is cut off ends with the text. */
function findQuotedEnd(text: string, start: number): number | undefined {
  const [quote] = /^\\*["']/.exec(text.slice(start, start + 16)) ?? []
  if (quote === undefined) return undefined
  for (let at = start + quote.length; at < text.length; at++) {
    if (text.startsWith(quote, at) && (quote.length > 1 || text[at - 1] !== '\\')) return at + quote.length
  }
  return text.length
}

function findLineEnd(text: string, start: number): number {
  const end = text.indexOf('\n', start)
  return end < 0 ? text.length : end
}

function findWordEnd(text: string, start: number): number {
  let at = start
  while (at < text.length && text[at] !== ' ' && text[at] !== '\n') at++
  return at
}

/** Redacts `user:password@` of sources. A line that begins as a source is one, blanks included. */
function redactUserInfo(text: string): string {
  if (!text.includes('@')) return text
  const lines = text.split('\n').map((line) => {
    if (/^(?:[A-Za-z][\w+.-]*:)?\/\//.test(line)) return redactUserInfoOfWord(line)
    return line.replaceAll(/"[^"]*"|'[^']*'|\S+/g, redactUserInfoOfWord)
  })
  return lines.join('\n')
}

/** Matches what precedes a password in a source without `//`. A path after the colon is that of a server. */
const USER_NAME_FORM = /(?<![^/@:="',(\s])[^/@:="',(\s]+:(?!\/)/

function redactUserInfoOfWord(word: string): string {
  const end = word.lastIndexOf('@')
  if (end < 0) return word
  const head = word.slice(0, end)
  const slashes = head.indexOf('//')
  const start = slashes >= 0 ? slashes + '//'.length : head.search(USER_NAME_FORM)
  return start < 0 ? word : word.slice(0, start) + REDACTED + word.slice(end)
}
