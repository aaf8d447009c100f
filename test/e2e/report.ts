import * as fs from 'node:fs'

export interface Spec {
  name: string
  verdict: 'passed' | 'failed' | 'skipped'
  seconds: number
  failure?: string
}

const CASE = /<testcase name="([^"]*)"[^>]*? time="([^"]*)"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const plain = (text: string) =>
  text
    .replace(/&#x?([0-9A-F]+);/gi, (whole, code) =>
      String.fromCharCode(Number.parseInt(code, whole.startsWith('&#x') ? 16 : 10)),
    )
    .replace(/&(amp|lt|gt|quot|apos);/g, (_, name) => ENTITIES[name] ?? '')

/** What the suite's JUnit files in a directory say of its specs, those that were filtered out among them as skipped. */
export function specsIn(directory: string): Spec[] {
  const files = fs.readdirSync(directory).filter((name) => /^junit.*\.xml$/.test(name))
  return files.flatMap((name) => specsOf(fs.readFileSync(`${directory}/${name}`, 'utf8')))
}

export function specsOf(xml: string): Spec[] {
  return [...xml.matchAll(CASE)].map(([, name = '', seconds = '', inner = '']) => {
    const failure = /<(?:failure|error)[^>]*>(.*?)<\/(?:failure|error)>/s.exec(inner)?.[1]
    const verdict = failure !== undefined ? 'failed' : /<skipped/.test(inner) ? 'skipped' : 'passed'
    const spec: Spec = { name: plain(name).replace(/^\[It\] /, ''), verdict, seconds: Number(seconds) }
    return failure === undefined ? spec : { ...spec, failure: plain(failure).trim() }
  })
}
