import * as fs from 'node:fs'
import { resolve } from 'node:path'

const CORPUS = resolve(import.meta.dirname, '../corpus')

/**
 * The inputs that are kept in test/corpus, by what they are: the file's name without its ending, dashes read as spaces.
 * @throws {Error} where there is none: a case that is gone would pass unnoticed
 */
export function corpus(kind: string): [name: string, content: Buffer][] {
  const names = fs.readdirSync(`${CORPUS}/${kind}`).sort()
  if (names.length === 0) throw new Error(`test/corpus/${kind} is empty`)
  return names.map((name) => [
    name.replace(/\.\w+$/, '').replaceAll('-', ' '),
    fs.readFileSync(`${CORPUS}/${kind}/${name}`),
  ])
}

/** The same for inputs that are kept as JSON. */
export function corpusOf<T>(kind: string): [name: string, input: T][] {
  return corpus(kind).map(([name, content]) => [name, JSON.parse(content.toString()) as T])
}
