import * as fs from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join, resolve } from 'node:path'
import { parseAst } from 'vitest/node'

const ROOT = resolve(import.meta.dirname, '../..')

/** Where what a pod's event or the log says is written. What a person types by hand is answered there and then. */
const PLACES = [
  'container-mount',
  'csi',
  'flexvolume',
  'fs-group',
  'heal',
  'host',
  'mount',
  'mount-table',
  'nri',
  'ownership',
  'path',
  'errors',
  'request',
  'worker',
  'store',
  'volume',
].map((room) => `src/${room}`)

/** A part of a message that is not known before it is written. */
export const HOLE = '…'

export interface Text {
  /** With HOLE for what is filled in. */
  text: string
  /** Of the form of a message, or where a message stands; else a part of one, or no message at all. */
  isMessage: boolean
}

/** What the sources may say. */
export function texts(): Text[] {
  const files = PLACES.flatMap((place) =>
    fs
      .readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(ROOT, place, name)),
  )
  return files.flatMap((file) => textsIn(fs.readFileSync(file, 'utf8')))
}

export function textsIn(source: string): Text[] {
  const found: Text[] = []
  visit(parseAst(stripTypeScriptTypes(source)), false)
  return found

  function visit(node: unknown, isMessage: boolean): void {
    if (!isNode(node)) return
    const text = textOf(node)
    if (text !== undefined) {
      if (/^[^\n]* [^\n]*$/.test(text)) found.push({ text, isMessage: isMessage || hasForm(text) })
      // What is filled in may be a message of its own.
      for (const child of holesOf(node)) visit(child, false)
      return
    }
    if (node.type === 'CallExpression' && FAULT_MAKERS.test(nameOf(node.callee))) {
      // `addFault` of the annotations has its code already.
      const parts = (node.arguments as unknown[]).slice(nameOf(node.callee) === 'addFault' ? 0 : 1)
      const texts = parts.map((part) => (isNode(part) ? (textOf(part) ?? HOLE) : HOLE))
      const [key = HOLE, reason = HOLE, ...rest] = nameOf(node.callee) === 'createOptionFault' ? texts : ['', ...texts]
      const isGiven = (at: number) => parts.length > at && nameOf(parts[at]) !== 'undefined'
      const reasonAt = parts.length - rest.length
      const [remedy, cause] = rest.map((word, at) => (isGiven(reasonAt + at) ? word : undefined))
      const words = [cause, remedy].filter((word) => word !== undefined).join('; ')
      const sentence = `${key === '' ? '' : `option "${key}" `}${reason}${words === '' ? '' : `: ${words}`}`
      const text = sentence.replaceAll('{option}', 'option')
      if (text !== '') found.push({ text, isMessage: true })
      for (const part of parts.filter(isNode)) {
        for (const child of textOf(part) === undefined ? [part] : holesOf(part)) visit(child, false)
      }
      return
    }
    // Its words and those of the error are one message.
    if (node.type === 'CallExpression' && nameOf(node.callee) === 'warnOnFailure') {
      const [, what] = node.arguments as unknown[]
      const words = isNode(what) ? textOf(what) : undefined
      if (words === undefined) throw new Error('warnOnFailure is called without words of its own')
      found.push({ text: `${words}: ${HOLE}`, isMessage: true })
    }
    const isGiver = ['NewExpression', 'CallExpression'].includes(String(node.type)) && GIVERS.test(nameOf(node.callee))
    const [first] = isGiver ? (node.arguments as unknown[]) : []
    for (const child of Object.values(node).flat()) visit(child, isGiver && child === first)
  }
}

/** Functions that make a fault of a code, the key of an option, the reason and the remedy. */
const FAULT_MAKERS = /^(create(Option|Annotation)?Fault|addFault|of:Refusal)$/

const GIVERS = /^(Refusal|UnknownFormat|DamagedRecord|HelperError|Unmappable|refuse|planRefusal|refused|push:faults)$/

/** "What is wrong: the way out", and more than two words of it. */
const hasForm = (text: string) => /\S: \S/.test(text) && (text.match(/ /g) ?? []).length > 2

type Node = Record<string, unknown> & { type: string }

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

function nameOf(callee: unknown): string {
  if (!isNode(callee)) return ''
  if (callee.type === 'Identifier') return String(callee.name)
  if (callee.type !== 'MemberExpression') return ''
  return `${nameOf(callee.property)}:${nameOf(callee.object)}`
}

/** A literal, a template or a sum of them; undefined for anything else. */
function textOf(node: Node): string | undefined {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined
  if (node.type === 'TemplateLiteral') {
    return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join(HOLE)
  }
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return undefined
  const sides = [node.left, node.right].map((side) => (isNode(side) ? textOf(side) : undefined))
  return sides.every((side) => side === undefined) ? undefined : sides.map((side) => side ?? HOLE).join('')
}

function holesOf(node: Node): unknown[] {
  if (node.type === 'TemplateLiteral') return node.expressions as unknown[]
  if (node.type !== 'BinaryExpression') return []
  return [node.left, node.right].flatMap((side) =>
    isNode(side) && textOf(side) !== undefined ? holesOf(side) : [side],
  )
}
