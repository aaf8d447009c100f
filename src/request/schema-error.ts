import * as z from 'zod/mini'
import { quoted } from '../errors/refusal.ts'

/** Creates the message of a configuration schema: the invalid value, and the remedy. */
export const formatSchemaError = (remedy: string) => ({
  error: (issue: { input?: unknown }) => `is ${quoted(issue.input)}: ${remedy}`,
})

export const createFlagSchema = () => z.optional(z.boolean(formatSchemaError('write true or false')))
