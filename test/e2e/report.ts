import * as fs from 'node:fs'

export interface Spec {
  name: string
  verdict: 'passed' | 'failed' | 'skipped'
  seconds: number
  failure?: string
  /** Why the suite itself skipped it. */
  skipped?: string
}

const CASE = /<testcase name="([^"]*)"[^>]*? time="([^"]*)"[^>]*?(?:\/>|>(.*?)<\/testcase>)/gs
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const plain = (text: string) =>
  text
    .replace(/&#x?([0-9A-F]+);/gi, (whole, code) =>
      String.fromCharCode(Number.parseInt(code, whole.startsWith('&#x') ? 16 : 10)),
    )
    .replace(/&(amp|lt|gt|quot|apos);/g, (_, name) => ENTITIES[name] ?? '')

/** Ginkgo's own steps, like `[SynchronizedBeforeSuite]`, are no specs. From Ginkgo 2 on a spec's name begins with `[It] `. */
const STEP = /^\[(?:(?:Synchronized)?(?:Before|After)Suite|Report(?:Before|After)(?:Suite|Each)|DeferCleanup[^\]]*)\]/

/** What the suite's JUnit files in a directory say of its specs, those that were filtered out among them as skipped. */
export function specsIn(directory: string): Spec[] {
  const files = fs.readdirSync(directory).filter((name) => /^junit.*\.xml$/.test(name))
  return files.flatMap((name) => specsOf(fs.readFileSync(`${directory}/${name}`, 'utf8')))
}

/** @throws {Error} a step of the suite itself that failed */
export function specsOf(xml: string): Spec[] {
  return [...xml.matchAll(CASE)].flatMap(([, name = '', seconds = '', inner = '']): Spec[] => {
    const failure = /<(?:failure|error)[^>]*>(.*?)<\/(?:failure|error)>/s.exec(inner)?.[1]
    if (STEP.test(plain(name))) {
      if (failure !== undefined) throw new Error(`the suite's ${plain(name)} failed: ${plain(failure).trim()}`)
      return []
    }
    const spec = { name: plain(name).replace(/^\[It\] /, ''), seconds: Number(seconds) }
    if (failure !== undefined) return [{ ...spec, verdict: 'failed', failure: plain(failure).trim() }]
    const skipped = /<skipped(?: message="([^"]*)")?/.exec(inner)
    if (skipped === null) return [{ ...spec, verdict: 'passed' }]
    return [{ ...spec, verdict: 'skipped', ...(skipped[1] && { skipped: plain(skipped[1]) }) }]
  })
}
