import { Refusal } from './refusal.ts'

/** What a check would say if it refused; null where it lets pass. */
export function refusalOf(check: () => void): string | null {
  try {
    check()
    return null
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}
