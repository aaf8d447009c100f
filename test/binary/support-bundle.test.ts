import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cannotServe, FuseNode } from '../helpers/fuse-node.ts'
import { startHangingServer } from '../helpers/hanging.ts'
import { BINARY, BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../helpers/tree.ts'

const title = `support-bundle of the executable${isRoot ? '' : ' (skipped: it needs root; run "sudo npm test")'}`

/** Secrets, each planted at another door. None is a part of another. */
const CANARIES = {
  mountOption: 'canary-option-6f2d',
  kubeletSecret: 'canary-secret-91ab',
  source: 'canary-source-44c0',
  configuration: 'canary-config-c3e7',
  tableSource: 'canary-table-0d18',
  tableOption: 'canary-shown-7be5',
  fileName: 'canary-name-58f4',
}

function call(node: BinaryNode, ...args: string[]) {
  const { stdout, stderr, status, error } = spawnSync(BINARY, ['support-bundle', ...args], {
    cwd: node.top,
    env: { PATH: process.env.PATH, MODEKEEP_CONFIG: `${node.top}/config.json` },
    maxBuffer: 1 << 28,
    timeout: 600_000,
  })
  if (error) throw error
  return { stdout, stderr: stderr.toString(), status }
}

const read = (file: string, name: string) =>
  execFileSync('tar', ['-xOf', file, '--wildcards', `*/${name}`], { encoding: 'utf8', maxBuffer: 1 << 26 })

describe.skipIf(!isRoot)(title, () => {
  it('has no secret of a call of kubelet, a source, the configuration or the mount table, in any form', async () => {
    const node = new BinaryNode()
    const source = `${node.volumes}/data`
    makeTree(fs, source, SIX_FILES)
    fs.writeFileSync(`${source}/${CANARIES.fileName}`, '')
    const encoded = Buffer.from(CANARIES.kubeletSecret).toString('base64')
    const walked = { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' }
    expect(await node.call('mount', node.podDirectory('a'), JSON.stringify(walked))).toEqual({ status: 'Success' })
    const cifs = {
      'kubernetes.io/fsType': 'cifs',
      source: `//bob:${CANARIES.source}@server/share`,
      mountOptions: `vers=3.0,username=bob,password=${CANARIES.mountOption}`,
      'kubernetes.io/secret/password': encoded,
    }
    for (const options of [
      cifs,
      { ...cifs, mountOptions: 'vers=3.0' },
      { ...cifs, [cifs.mountOptions]: cifs.source },
    ]) {
      expect(await node.call('mount', node.podDirectory('b'), JSON.stringify(options))).toMatchObject({
        status: 'Failure',
      })
    }
    fs.mkdirSync(`${node.top}/shown`)
    const shown = `//bob:${CANARIES.tableSource}@server/share,password=${CANARIES.tableOption}`
    execFileSync('mount', ['-t', 'tmpfs', shown, `${node.top}/shown`])
    const config = JSON.parse(fs.readFileSync(`${node.top}/config.json`, 'utf8'))
    const changed = { ...config, smbPassword: CANARIES.configuration, allow: [{ password: CANARIES.configuration }] }
    fs.writeFileSync(`${node.top}/config.json`, JSON.stringify(changed))
    const file = `${node.top}/bundle.tar`
    try {
      expect(fs.readFileSync('/proc/self/mountinfo', 'utf8')).toContain(CANARIES.tableOption)
      expect(fs.readFileSync(node.log, 'utf8')).toContain('"outcome":"Failure"')
      expect(call(node, '--output', file)).toMatchObject({ stderr: '', status: 0 })
    } finally {
      execFileSync('umount', [`${node.top}/shown`])
    }
    const archive = fs.readFileSync(file)
    for (const [door, canary] of Object.entries(CANARIES)) {
      for (const form of [canary, Buffer.from(canary).toString('base64'), Buffer.from(canary).toString('hex')]) {
        expect(archive.includes(form), `${door}: ${form}`).toBe(false)
      }
    }
    expect(read(file, 'mountinfo')).toContain(`${node.top}/shown`)
    expect(read(file, 'log.jsonl')).toContain('"outcome":"Failure"')
    expect(read(file, 'configuration.json')).toContain('smbPassword')
    expect(JSON.parse(read(file, 'status.json')).mounts).toMatchObject([{ source }])
    expect(JSON.parse(read(file, 'records/mounts/1.json'))).toMatchObject({ source })
  })

  it('writes a file that only root can read, lists its content, and leaves nothing else', () => {
    const node = new BinaryNode()
    const before = fs.readdirSync(node.top)
    const { stdout, status } = call(node)
    const [name = '', ...more] = fs.readdirSync(node.top).filter((entry) => !before.includes(entry))
    expect({ status, more }).toEqual({ status: 0, more: [] })
    expect(name).toMatch(/^modekeep-support-[\w-]+-\d{8}T\d{6}Z\.tar$/)
    expect(fs.statSync(`${node.top}/${name}`).mode & 0o7777).toBe(0o600)
    const rows = execFileSync('tar', ['-tvf', `${node.top}/${name}`], { encoding: 'utf8' })
      .trim()
      .split('\n')
    for (const row of rows) {
      const [, , bytes = '', , , path = ''] = row.split(/ +/)
      expect(stdout.toString()).toMatch(new RegExp(`^ +${path.replace(/^[^/]*\//, '')} +${bytes}( |$)`, 'm'))
    }
    const json = call(node, '--json', '--output', 'second.tar')
    const document = JSON.parse(json.stdout.toString())
    expect(document).toMatchObject({ apiVersion: 'modekeep/v1', kind: 'SupportBundle', outcome: 'written' })
    expect(document.bytes).toBe(fs.statSync(`${node.top}/second.tar`).size)
    expect(document.files).toHaveLength(rows.length)
  })

  it('writes the archive to a pipe with --output -, and the list to stderr', () => {
    const node = new BinaryNode()
    const { stdout, stderr, status } = call(node, '--output', '-')
    expect(status).toBe(0)
    const names = execFileSync('tar', ['-tf', '-'], { input: stdout, encoding: 'utf8' }).trim().split('\n')
    for (const name of names) expect(stderr).toContain(` ${name.replace(/^[^/]*\//, '')} `)
    expect(stderr).toMatch(/^stdout: written, \d+ bytes, \d+ files$/m)
    const refused = call(node, '--output', '-', '--json')
    expect(refused).toMatchObject({ status: 2, stderr: '' })
    expect(refused.stdout.toString()).toContain('--json needs stdout for its document')
  })

  it('follows no link at the path of its output, and replaces no file', () => {
    const node = new BinaryNode()
    const target = `${node.top}/target`
    fs.symlinkSync(target, `${node.top}/dangling.tar`)
    fs.writeFileSync(`${node.top}/mine.tar`, 'mine')
    fs.symlinkSync('mine.tar', `${node.top}/link.tar`)
    const before = fs.readdirSync(node.top)
    for (const output of ['dangling.tar', 'mine.tar', 'link.tar']) {
      const { stderr, status } = call(node, '--output', output)
      expect({ output, status }).toEqual({ output, status: 1 })
      expect(stderr).toContain(`${output}" is there already: name another file with --output [command]`)
    }
    expect(fs.readdirSync(node.top)).toEqual(before)
    expect(fs.readFileSync(`${node.top}/mine.tar`, 'utf8')).toBe('mine')
  })

  it('with parts that cannot be read has the others, names the parts, and ends with exit status 1', () => {
    const node = new BinaryNode()
    fs.rmSync(node.log, { force: true })
    fs.mkdirSync(node.log, { recursive: true })
    const { stdout, stderr, status } = call(node, '--output', 'bundle.tar')
    expect(status).toBe(1)
    expect(stdout.toString()).toMatch(/bundle\.tar: partly written, /)
    expect(stderr).toBe('modekeep: parts could not be read: errors.txt in the bundle names them\n')
    expect(read(`${node.top}/bundle.tar`, 'errors.txt')).toContain(`${node.log}: `)
    expect(read(`${node.top}/bundle.tar`, 'doctor.json')).toContain('"kind":"Doctor"')
  })
})

const skipReason = cannotServe('cc')

it.skipIf(skipReason !== '')(
  addSkipReason('support-bundle of a node with a volume whose server hangs ends, and names the volume', skipReason),
  async () => {
    const node = new FuseNode([])
    const served = `${node.volumes}/served`
    const server = await startHangingServer(served, `${node.top}/hangs`)
    expect(await node.mount('a', { source: served })).toEqual({ status: 'Success' })
    server.hang()
    const file = `${node.top}/bundle.tar`
    const { stdout, status } = spawnSync(BINARY, ['support-bundle', '--output', file], {
      env: { PATH: process.env.PATH, MODEKEEP_CONFIG: node.config },
      encoding: 'utf8',
      timeout: 600_000,
    })
    expect({ status, last: stdout.trim().split('\n').at(-1) }).toEqual({
      status: 0,
      last: expect.stringContaining('written'),
    })
    expect(JSON.parse(read(file, 'status.json')).mounts).toMatchObject([
      { directory: node.podDirectory('a'), state: 'unknown', reason: expect.stringContaining('does not respond') },
    ])
    server.resume()
  },
)
