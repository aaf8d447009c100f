import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import fs from 'fs-extra'

const ROOT = join(import.meta.dirname, '../..')

export const ARCHITECTURES = ['x64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** The word for a processor that archives, Debian and Go have. */
export const PROCESSOR = { x64: 'amd64', arm64: 'arm64' } as const satisfies Record<Architecture, string>

/** The directory of the npm package that holds Node for a processor, as it is published: `bin/node`, `LICENSE`. */
export async function nodePackage(arch: Architecture): Promise<string> {
  const name = `node-linux-${arch}`
  try {
    return join(createRequire(import.meta.url).resolve(`${name}/package.json`), '..')
  } catch {
    // npm installs it on that processor only.
    return fetched(name)
  }
}

/** The user's cache directory of this project; what is missing there is fetched again. */
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'modekeep')

async function fetched(name: string): Promise<string> {
  const { version, integrity } = (await fs.readJson(join(ROOT, 'package-lock.json'))).packages[`node_modules/${name}`]
  const place = join(CACHE, `${name}-${version}`)
  if (await fs.pathExists(place)) return place
  console.log(`Fetching ${name} ${version} …`)
  const work = await fs.mkdtemp(join(tmpdir(), 'modekeep-fetch-'))
  try {
    const { stdout } = await execa('npm', ['pack', '--silent', `${name}@${version}`], { cwd: work })
    const archive = join(work, stdout.trim())
    checkIntegrity(name, await fs.readFile(archive), integrity)
    await execa('tar', ['-xzf', archive, '-C', work, 'package'])
    await fs.move(join(work, 'package'), `${place}.${process.pid}`)
    // Of two at once either is right.
    await fs.rename(`${place}.${process.pid}`, place).catch(() => fs.remove(`${place}.${process.pid}`))
  } finally {
    await fs.remove(work)
  }
  return place
}

function checkIntegrity(name: string, bytes: Buffer, integrity: unknown): void {
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  if (found !== integrity)
    throw new Error(`${name} is not what package-lock.json asks for (${integrity}): got ${found}`)
}
