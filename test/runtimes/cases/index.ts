import type { Case } from './case.ts'
import { WITHOUT } from './without.ts'

export const CASES: readonly Case[] = [...WITHOUT]
