import { Lexer } from 'yaml'
import { Refusal } from '../errors/refusal.ts'

/** A manifest above these bounds is refused before it is parsed: the parser needs some 250 bytes of memory for each byte. */
export const MAX_MANIFEST_BYTES = 4 * 1024 * 1024
export const MAX_DOCUMENTS = 5000
export const MAX_DEPTH = 200

/**
 * Refuses a text whose parsing would take disproportionate time or memory. Reads each character once.
 * @throws {Refusal} that names the bound and its value
 */
export function assertParsable(text: string, file: string): void {
  const documents = (text.match(/^---(?=\s|$)/gm)?.length ?? 0) + 1
  if (documents > MAX_DOCUMENTS + 1) {
    throw new Refusal(`${file} has more than ${MAX_DOCUMENTS} documents: split it`)
  }
  if (exceedsDepth(text)) {
    throw new Refusal(`${file} nests values more than ${MAX_DEPTH} deep: it is no manifest, name another file`)
  }
}

/** Counts open flow collections, and sequences and mappings that begin on one line. Indentation of lines bounds the others. */
function exceedsDepth(text: string): boolean {
  let flow = 0
  let onLine = 0
  for (const lexeme of new Lexer().lex(text)) {
    if (lexeme === '[' || lexeme === '{') flow++
    else if (lexeme === ']' || lexeme === '}') flow = Math.max(0, flow - 1)
    else if (lexeme === '-' || lexeme === '?' || lexeme === ':') onLine++
    else if (lexeme.startsWith('\n') || lexeme.startsWith('\r\n')) onLine = 0
    if (flow > MAX_DEPTH || (flow === 0 && onLine > MAX_DEPTH)) return true
  }
  return false
}
