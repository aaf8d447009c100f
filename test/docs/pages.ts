import * as fs from 'node:fs'
import { dirname, join, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

export interface Page {
  /** From the root of the checkout. */
  path: string
  text: string
}

/** What is written for people. */
export const PAGES: readonly Page[] = [
  ...['README.md', 'CHANGELOG.md', 'SECURITY.md'],
  ...fs
    .readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...fs
    .readdirSync(join(ROOT, 'driver'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `driver/${name}`),
].map((path) => ({ path, text: fs.readFileSync(join(ROOT, path), 'utf8') }))

/** Without blocks of code, in which nothing is a link or a heading. */
const prose = (text: string) => text.replaceAll(/^```[\s\S]*?^```$/gm, '')

/** Links to files of the checkout, from its root, with the heading they lead to. */
export function linksOf({ path, text }: Page): { link: string; file: string; anchor: string | undefined }[] {
  return [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [name = '', anchor] = link.split('#')
      return { link, file: name === '' ? path : join(dirname(path), name), anchor }
    })
}

/** The names by which the headings of a page are linked, as GitHub makes them. */
export function anchorsOf(text: string): string[] {
  return [...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** Files and folders that a page names as code, or has Kubernetes apply. */
export function pathsOf({ text }: Page): string[] {
  return (
    [...text.matchAll(/(?:`|kubectl apply -[fk] )((?:src|test|driver|scripts|docs|bench|\.ci)\/[^`\s]*)/g)]
      .map(([, path = '']) => path)
      // Results are written by measurements.
      .filter((path) => !/[<…*{]|^bench\/results\//.test(path))
  )
}
