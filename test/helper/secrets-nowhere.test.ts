import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cifsKind } from '../../src/volume/cifs.ts'
import { BinaryNode } from '../helpers/kubelet-call.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { isRoot } from '../helpers/stage.ts'
import { RemoteStage, secretsOf } from '../volume/remote.ts'
import { bindFakeProgram, findProcessesWith, readFailureMessage } from './fake-programs.ts'

const PASSWORD = 'p,a"s\\s w%rd!$`x`'
const KEY = '-----BEGIN-----\nMIIEpAIBAAKCAQEA\n-----END-----\n'
const SECRETS = { username: 'bob-the-user', password: PASSWORD, domain: 'WORKGROUP-7', key: KEY }

/** The keys that a Secret for cifs may have. */
const CIFS_SECRETS = { username: SECRETS.username, password: SECRETS.password, domain: SECRETS.domain }

/** Lists every text that would give one of the secrets away. */
function listForms(secrets: Readonly<Record<string, string>>): string[] {
  return Object.values(secrets).flatMap((secret) => {
    const base64 = Buffer.from(secret).toString('base64')
    return [secret, base64, base64.replace(/=+$/, ''), encodeURIComponent(secret), ...secret.trim().split('\n')]
  })
}

const FORMS = listForms(SECRETS)
const CIFS_FORMS = listForms(CIFS_SECRETS)

function formsIn(text: string | Buffer, forms = FORMS): string[] {
  return forms.filter((form) => text.includes(form))
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** Prints its input in many forms on both streams. */
const LOUD = `
loud() {
  echo "argv: $*"; cat /proc/self/environ; cat; cat /proc/self/fd/3
  ${FORMS.map((form) => `printf '%s\\n' ${quoted(form)}`).join('\n  ')}
  base64 -w 0 /proc/self/fd/3; echo
}
loud "$@"; loud "$@" >&2`

const HIDDEN = 'its output is not shown, as it had secrets'

/** FakePrograms that write a text in disguise. */
const DISGUISES: readonly [how: string, program: string][] = [
  ['in hex with spaces', 'od -An -tx1'],
  ['one character at a time', "sed 's/./& /g'"],
  ['backwards', 'rev'],
  ['with replaced letters', 'tr a-zA-Z n-za-mN-ZA-M'],
  ['in decimal numbers', 'od -An -tu1'],
  ['line by line', 'fold -w 1'],
]

/** One that says where it is and waits until the test has looked around. */
const WAITING = 'echo $$ > $TOP/waiting; while [ -e $TOP/waiting ]; do sleep 0.05; done'

async function whenThere(path: string): Promise<void> {
  while (!fs.existsSync(path)) await new Promise((done) => setTimeout(done, 20))
}

describe.skipIf(!isRoot)(addSkipReason('secrets for helper programs', cannotMountWith()), () => {
  it('a secret is not in the error message of a helper that fails and prints its input', async () => {
    const stage = new RemoteStage(cifsKind)
    stage.programs.add('mount.cifs', `${LOUD}; exit 13`)
    const secrets = secretsOf(SECRETS)
    const message = await readFailureMessage(stage.open({ source: '//server/share' }, { secrets }))
    expect(message).toBe(`mount.cifs failed with exit status 13: ${HIDDEN}`)
    expect(formsIn(message)).toEqual([])
  })

  it.each(DISGUISES)(
    'a secret is not in the error message of a helper that prints the secret %s',
    async (_how, program) => {
      const stage = new RemoteStage(cifsKind)
      stage.programs.add(
        'mount.cifs',
        `{ echo 'mount error(13): Permission denied'; ${program} < /proc/self/fd/3; } >&2; exit 32`,
      )
      const message = await readFailureMessage(
        stage.open({ source: '//server/share' }, { secrets: secretsOf(SECRETS) }),
      )
      expect(message).toBe(
        `mount.cifs failed with exit status 32: mount error(13): Permission denied (the rest of ${HIDDEN})`,
      )
    },
  )

  it('a secret is not in the error message of a helper, even if the secret equals a text of the fixed list', async () => {
    const stage = new RemoteStage(cifsKind)
    stage.programs.add('mount.cifs', 'cat /proc/self/fd/3; exit 1')
    const secrets = secretsOf({ username: 'bob', password: 'Permission denied' })
    const message = await readFailureMessage(stage.open({ source: '//server/share' }, { secrets }))
    expect(message).toBe(`mount.cifs failed with exit status 1: ${HIDDEN}`)
  })

  it('a secret is not in the error message of a helper that is killed in the middle of a word', async () => {
    const stage = new RemoteStage(cifsKind)
    stage.programs.add('mount.cifs', `${LOUD}; printf '%s' ${quoted(PASSWORD.slice(0, -2))}; kill -9 $$`)
    const secrets = secretsOf(SECRETS)
    const message = await readFailureMessage(stage.open({ source: '//server/share' }, { secrets }))
    expect(message).toBe(`mount.cifs was ended by SIGKILL: ${HIDDEN}`)
    expect(formsIn(message)).toEqual([])
    expect(message).not.toContain(PASSWORD.slice(0, -2))
  })

  it('a secret is not in the arguments or environment of any process, or in a file, while the helper runs', async () => {
    const stage = new RemoteStage(cifsKind)
    stage.programs.add('mount.cifs', `cat /proc/self/fd/3 > /dev/null; ${WAITING}; exit 1`)
    const work = readFailureMessage(stage.open({ source: '//server/share' }, { secrets: secretsOf(SECRETS) }))
    const waiting = `${stage.programs.top}/waiting`
    await whenThere(waiting)
    const found = FORMS.flatMap((form) => findProcessesWith(form))
    // It finds processes by what they have: the helper, by its source.
    const seen = findProcessesWith('//server/share')
    const places = [stage.stateDir, '/dev/shm', '/run']
    const written = spawnSync('grep', ['-rlF', '-e', PASSWORD, '-e', SECRETS.username, ...places], { encoding: 'utf8' })
    fs.rmSync(waiting)
    await work
    expect(found).toEqual([])
    expect(seen.length).toBeGreaterThan(0)
    expect(written.stdout).toBe('')
  })

  it('a secret is not in the reply, the log or the records of a call, or in other processes', async () => {
    const node = new BinaryNode()
    const config = {
      stateDir: node.state,
      logFile: node.log,
      logLevel: 'debug',
      allow: [{ sources: ['//server/*'], fsTypes: ['cifs'] }],
    }
    fs.writeFileSync(`${node.top}/config.json`, JSON.stringify(config))
    const programs = `${node.top}/programs`
    fs.mkdirSync(programs)
    const waiting = `${programs}/waiting`
    fs.writeFileSync(`${programs}/mount.cifs`, `#!/bin/sh\nTOP=${programs}\n${LOUD}\n${WAITING}\nexit 13\n`, {
      mode: 0o755,
    })
    bindFakeProgram('mount.cifs', programs)
    const secrets = Object.entries(CIFS_SECRETS).map(([key, value]) => [
      `kubernetes.io/secret/${key}`,
      Buffer.from(value).toString('base64'),
    ])
    const options = { 'kubernetes.io/fsType': 'cifs', source: '//server/share', ...Object.fromEntries(secrets) }
    const { child, ended } = node.start(['mount', node.podDirectory('p'), JSON.stringify(options)])
    await whenThere(waiting)
    // Kubelet itself has put the secrets into the arguments of the call.
    const others = CIFS_FORMS.flatMap((form) => findProcessesWith(form)).filter((pid) => Number(pid) !== child.pid)
    fs.rmSync(waiting)
    const { text } = await ended
    expect(JSON.parse(text)).toMatchObject({ status: 'Failure', message: expect.stringMatching(/^mount\.cifs failed/) })
    expect(others).toEqual([])
    expect(formsIn(text, CIFS_FORMS)).toEqual([])
    const log = fs.readFileSync(node.log)
    expect(log.includes('mount.cifs failed')).toBe(true)
    expect(formsIn(log, CIFS_FORMS)).toEqual([])
    for (const name of fs.readdirSync(node.state, { recursive: true, encoding: 'utf8' })) {
      const path = `${node.state}/${name}`
      if (fs.statSync(path).isFile()) expect(formsIn(fs.readFileSync(path), CIFS_FORMS)).toEqual([])
    }
  })
})
