import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decodePodSecrets, SECRET_KEY_PREFIX } from '../../src/config/json-options.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import type { AllowRule } from '../../src/config/rule.ts'
import { createLinuxHelperRunner } from '../../src/kernel/linux/helpers.ts'
import { SYSTEM_PROGRAM_DIRECTORIES } from '../../src/kernel/linux/programs.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { unmountPodVolume } from '../../src/mount/unmount.ts'
import { mountRecords } from '../../src/state/mount-record.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const title = `keys of a Secret${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`
const VALUE = 'AKIA:wJalrXUtnFEMI'

// Reports what it was given, and leaves a daemon that reads its key once more after the mount.
const PROGRAM = `#!/bin/sh
out=OUT
tr '\\0' ' ' </proc/$$/cmdline >"$out/cmdline"
tr '\\0' '\\n' </proc/$$/environ >"$out/environ"
file=$(printf %s "$4" | tr , '\\n' | sed -n 's/^passwd_file=//p')
[ -z "$file" ] || { cat "$file" >"$out/content"; stat -L -c '%a %u %g' "$file" >"$out/mode"; stat -f -L -c %T "$file" >"$out/type"; printf %s "$file" >"$out/path"; }
[ "$1" != bucket:fail ] || { cat "$file" >&2; exit 1; }
mount -t tmpfs s3fs "$2"
`

describe.skipIf(!isRoot)(title, () => {
  let stage: Stage
  let out: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    out = `${stage.top}/out`
    fs.mkdirSync(out)
    fs.writeFileSync(`${out}/s3fs`, PROGRAM.replace('OUT', out), { mode: 0o755 })
    stage.host = { ...stage.host, helpers: createLinuxHelperRunner([out, ...SYSTEM_PROGRAM_DIRECTORIES], () => false) }
  })
  afterEach(async () => {
    for (const _ of stage.layers('a')) execFileSync('umount', ['-l', stage.podDirectory('a')])
    stage.close()
  })

  function allow(secretKeys?: AllowRule['secretKeys']): void {
    const rule = { sources: ['bucket:*', 'bucket:fail', 'bucket:data'], fsTypes: ['fuse.s3fs'], secretKeys }
    const bind = { sources: [`${stage.top}/volumes/*`], fsTypes: ['bind', 'tmpfs', 'ext4', 'nfs', 'fuse.bindfs'] }
    stage.config = { ...stage.config, helperTimeoutSeconds: 10, allow: [bind, rule] }
  }
  async function mountWith(fsType: string, secret: Record<string, string>, source = 'bucket:data'): Promise<void> {
    const directory = stage.podDirectory('a')
    fs.mkdirSync(directory, { recursive: true })
    const secrets = Object.entries(secret).map(([key, value]) => [
      `${SECRET_KEY_PREFIX}${key}`,
      Buffer.from(value).toString('base64'),
    ])
    const text = JSON.stringify({ source, 'kubernetes.io/fsType': fsType, ...Object.fromEntries(secrets) })
    const request = parseFlexVolumeRequest(directory, text, stage.config, volumeKindLookup)
    await mountPodVolume({ ...stage.session(), secrets: decodePodSecrets(text) }, request)
  }
  const read = (name: string) => fs.readFileSync(`${out}/${name}`, 'utf8')

  it.each([
    ['bind', 'it takes none'],
    ['tmpfs', 'it takes none'],
    ['ext4', 'it takes none'],
    ['nfs', 'it takes none'],
    ['fuse.bindfs', 'it takes none'],
    ['cifs', 'it takes username, password, domain'],
    ['fuse.sshfs', 'it takes ssh-privatekey, password, known_hosts'],
  ])('a key of a Secret that %s does not support is refused by name', async (fsType, takes) => {
    allow()
    const made = mountWith(fsType, { token: VALUE }, `${stage.top}/volumes/data`)
    await expect(made).rejects.toThrow('the Secret has "token"')
    await expect(made).rejects.toThrow(takes)
    await expect(made).rejects.not.toThrow(VALUE)
  })

  it('a key of a Secret that no rule names is refused for a FUSE program', async () => {
    allow()
    await expect(mountWith('fuse.s3fs', { passwd: VALUE })).rejects.toThrow(
      'the key "passwd" of its Secret in secretKeys',
    )
    allow({ other: { option: 'passwd_file' } })
    await expect(mountWith('fuse.s3fs', { passwd: VALUE })).rejects.toThrow(
      'the key "passwd" of its Secret in secretKeys',
    )
    expect(stage.layers('a')).toEqual([])
  })

  it('a key of a Secret is passed to the program in a file of mode 0600 in memory, which is removed when the mount is ready', async () => {
    allow({ passwd: { option: 'passwd_file' } })
    await mountWith('fuse.s3fs', { passwd: VALUE })
    expect([read('content'), read('mode'), read('type')]).toEqual([VALUE, '600 0 0\n', 'tmpfs\n'])
    expect(read('path')).toMatch(new RegExp(`^${stage.config.stateDir}/staging/`))
    expect(fs.existsSync(read('path'))).toBe(false)
    expect(read('cmdline')).not.toContain(VALUE)
    expect(read('environ')).not.toContain(VALUE)
    expect(stage.layers('a')).not.toEqual([])
    const record = mountRecords.read(stage, fs.realpathSync(stage.podDirectory('a')))
    expect(record).toMatchObject({ hadSecrets: true })
    expect(JSON.stringify(record)).not.toContain('wJalr')
    await unmountPodVolume(stage.session(), stage.podDirectory('a'))
  })

  it('a key of a Secret that a daemon keeps is a descriptor that no other process can open by name', async () => {
    allow({ passwd: { option: 'passwd_file', keep: 'daemon' } })
    await mountWith('fuse.s3fs', { passwd: VALUE })
    expect([read('content'), read('path')]).toEqual([VALUE, '/proc/self/fd/3'])
    expect(read('mode')).toMatch(/^[46]00 0 0/)
  })

  it('a key of a Secret is passed in the environment only if the rule names a variable', async () => {
    allow({ passwd: { option: 'passwd_file' }, id: { variable: 'AWS_ACCESS_KEY_ID' } })
    await mountWith('fuse.s3fs', { passwd: 'x', id: VALUE })
    expect(read('environ').split('\n')).toContain(`AWS_ACCESS_KEY_ID=${VALUE}`)
    expect(read('cmdline')).not.toContain(VALUE)
  })

  it("a Secret's value with a zero byte is refused for an environment variable, and the message does not show the value", async () => {
    allow({ id: { variable: 'AWS_ACCESS_KEY_ID' } })
    await expect(mountWith('fuse.s3fs', { id: 'a\0b' })).rejects.toThrow('key "id" of the Secret')
  })

  it('a FUSE program that fails leaves no file, and the error message contains no secret', async () => {
    allow({ passwd: { option: 'passwd_file' } })
    const made = mountWith('fuse.s3fs', { passwd: VALUE }, 'bucket:fail')
    await expect(made).rejects.toThrow('s3fs failed')
    await expect(made).rejects.not.toThrow(VALUE)
    expect(fs.readdirSync(`${stage.config.stateDir}/staging`)).toEqual([])
  })

  it("an option that a rule sets from the Secret cannot be set in the pod's mountOptions", async () => {
    allow({ passwd: { option: 'passwd_file' } })
    stage.config = {
      ...stage.config,
      allow: stage.config.allow.map((rule) => ({ ...rule, mountOptions: ['passwd_file'] })),
    }
    const directory = stage.podDirectory('a')
    fs.mkdirSync(directory, { recursive: true })
    const text = JSON.stringify({
      source: 'bucket:data',
      'kubernetes.io/fsType': 'fuse.s3fs',
      mountOptions: 'passwd_file=/etc/shadow',
      [`${SECRET_KEY_PREFIX}passwd`]: Buffer.from(VALUE).toString('base64'),
    })
    const request = parseFlexVolumeRequest(directory, text, stage.config, volumeKindLookup)
    const made = mountPodVolume({ ...stage.session(), secrets: decodePodSecrets(text) }, request)
    await expect(made).rejects.toThrow('option "mountOptions" has passwd_file')
  })
})
