import * as z from 'zod/mini'
import { formatMarkdownCode } from './table.ts'

/** What a schema allows, in words: `true`, `false` or "a list of strings". Its checks say more, in the descriptions. */
export function describeSchemaValues(schema: z.core.$ZodType): string {
  return describeJsonSchema(z.toJSONSchema(schema, { io: 'input' }))
}

type JsonSchema = z.core.JSONSchema.BaseSchema

function describeJsonSchema({ enum: choices, type, items, additionalProperties }: JsonSchema): string {
  if (choices) return choices.map((choice) => formatMarkdownCode(String(choice))).join(', ')
  if (type === 'array') return `a list of ${describePluralValues(items as JsonSchema)}`
  if (type === 'object' && typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0) {
    return `an object of ${describeJsonSchema(additionalProperties).replace(/^a list/, 'lists')}`
  }
  return { string: 'text', number: 'a number', boolean: '`true`, `false`', object: 'an object' }[String(type)] ?? ''
}

/** A rule is checked as a whole, for a better message: its schema alone says nothing. */
const PLURAL_TYPE_NAMES: Readonly<Record<string, string>> = { text: 'strings', 'an object': 'objects', '': 'objects' }

const describePluralValues = (schema: JsonSchema) =>
  PLURAL_TYPE_NAMES[describeJsonSchema(schema)] ?? describeJsonSchema(schema)
