import * as z from 'zod/mini'
import { quoted } from '../refusal/refusal.ts'

/** The message of a schema of the configuration: what was written, and what to write instead. */
export const wants = (what: string) => ({
  error: (issue: { input?: unknown }) => `is ${quoted(issue.input)}: ${what}`,
})

export const flag = () => z.optional(z.boolean(wants('write true or false')))
