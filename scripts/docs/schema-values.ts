import * as z from 'zod/mini'
import { code } from './table.ts'

/** What a schema allows, in words: `true`, `false` or "a list of strings". Its checks say more, in the descriptions. */
export function valuesOf(schema: z.core.$ZodType): string {
  return wordsFor(z.toJSONSchema(schema, { io: 'input' }))
}

type JsonSchema = z.core.JSONSchema.BaseSchema

function wordsFor({ enum: choices, type, items, additionalProperties }: JsonSchema): string {
  if (choices) return choices.map((choice) => code(String(choice))).join(', ')
  if (type === 'array') return `a list of ${many(items as JsonSchema)}`
  if (type === 'object' && typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0) {
    return `an object of ${wordsFor(additionalProperties).replace(/^a list/, 'lists')}`
  }
  return { string: 'text', number: 'a number', boolean: '`true`, `false`', object: 'an object' }[String(type)] ?? ''
}

/** A rule is checked as a whole, for a better message: its schema alone says nothing. */
const MANY: Readonly<Record<string, string>> = { text: 'strings', 'an object': 'objects', '': 'objects' }

const many = (schema: JsonSchema) => MANY[wordsFor(schema)] ?? wordsFor(schema)
