import * as fs from 'node:fs'
import { join } from 'node:path'
import { run } from '../command.ts'

/**
 * Downloads Debian's source package of Kubernetes into `directory`. Sources, lists and cache are private: the machine's
 * apt keeps those it has.
 * @throws {Error} with apt's last words
 */
export function fetchSource(directory: string): { description: string; version: string } {
  const etc = '/etc/apt'
  for (const part of ['lists/partial', 'cache/archives/partial', 'sources']) {
    fs.mkdirSync(`${directory}/${part}`, { recursive: true })
  }
  const parts = fs.existsSync(`${etc}/sources.list.d`) ? fs.readdirSync(`${etc}/sources.list.d`) : []
  for (const name of ['../sources.list', ...parts]) {
    const path = join(etc, 'sources.list.d', name)
    if (!/\.(list|sources)$/.test(name) || !fs.existsSync(path)) continue
    const convert = name.endsWith('.sources') ? sourceStanzas : sourceLines
    fs.writeFileSync(`${directory}/sources/${name.replace('../', '')}`, convert(fs.readFileSync(path, 'utf8')))
  }
  const settings = {
    'Dir::Etc::sourcelist': '/dev/null',
    'Dir::Etc::sourceparts': `${directory}/sources`,
    'Dir::State::lists': `${directory}/lists`,
    'Dir::Cache': `${directory}/cache`,
    'APT::Sandbox::User': 'root',
    'Acquire::http::Timeout': '30',
  }
  const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])
  run('apt-get', [...options, '-q', 'update'])
  run('apt-get', [...options, '-q', 'source', '--download-only', 'kubernetes'], { cwd: directory })
  const description = fs.readdirSync(directory).find((name) => name.endsWith('.dsc'))
  if (!description) throw new Error('apt-get brought no source package')
  return { description, version: description.replace(/^kubernetes_|\.dsc$/g, '') }
}

/** Unpacks what `fetchSource` brought, with Debian's patches. @param env whose PATH has patch and xz */
export function unpackSource(directory: string, source: string, env: NodeJS.ProcessEnv): void {
  const archive = (end: string) => `${directory}/${fs.readdirSync(directory).find((name) => name.endsWith(end))}`
  fs.mkdirSync(source, { recursive: true })
  run('tar', ['-xf', archive('.orig.tar.gz'), '-C', source, '--strip-components=1'], { env })
  run('tar', ['-xf', archive('.debian.tar.xz'), '-C', source], { env })
  const patches = fs.readFileSync(`${source}/debian/patches/series`, 'utf8').split('\n')
  for (const name of patches.filter((line) => line !== '' && !line.startsWith('#'))) {
    run('patch', ['-p1', '-s', '-i', `debian/patches/${name}`], { cwd: source, env })
  }
}

/** Debian's entries of a list in the one-line form, for source packages. */
export function sourceLines(list: string): string {
  const lines = list.split('\n').filter((line) => /^\s*deb\s/.test(line) && isDebians(line))
  return lines.map((line) => `${line.trim().replace(/^deb\s/, 'deb-src ')}\n`).join('')
}

/** The same for the form in stanzas. */
export function sourceStanzas(list: string): string {
  const stanzas = list.split(/\n\s*\n/).filter((stanza) => /^Types:/m.test(stanza) && isDebians(stanza))
  return stanzas.map((stanza) => `${stanza.trim().replace(/^Types:.*$/m, 'Types: deb-src')}\n`).join('\n')
}

// Others' archives have no such package, and asking them costs time.
const isDebians = (entry: string) => /\bhttps?:\S*\/debian/.test(entry)
