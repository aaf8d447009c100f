import { describe, expect, it } from 'vitest'
import { redactDocument, redactMountinfoLine, redactText, redactValue } from '../../../src/cli/support-bundle/redact.ts'

const CANARY = 'hunter2'

describe('a text in a support bundle', () => {
  it.each([
    `rw,username=bob,password=${CANARY},ro`,
    `password=a,,${CANARY},ro`,
    `pass=${CANARY}`,
    `password2="a,${CANARY}",ro`,
    `password=with blanks ${CANARY}`,
    `credentials=/etc/${CANARY}`,
    `user=${CANARY},domain=${CANARY}`,
    `AWS_SECRET_ACCESS_KEY=${CANARY}`,
    `https://host/path?page=1&access_token=${CANARY}`,
    `name=admin,key=${CANARY}`,
    `mount said: {"password": "${CANARY}"}`,
    `{\\"kubernetes.io/secret/password\\":\\"${CANARY}\\"}`,
    `{"password":"cut off ${CANARY}`,
    `password: ${CANARY}`,
    `Authorization: Basic ${CANARY}aGVsbG8=`,
    `sent Bearer ${CANARY}abcdef`,
    `program --token ${CANARY} --verbose`,
    `//bob:${CANARY}@server/share`,
    `//bob:a@${CANARY}@server/share`,
    `//bob:a/${CANARY}@server/share`,
    `//bob:a ${CANARY}@server/share`,
    `source "//bob:a ${CANARY}@server/share" is refused`,
    `smb://bob:${CANARY}@server/share is refused`,
    `https://${CANARY}@server/`,
    `bob:${CANARY}@server:/export`,
    `source=bob:${CANARY}@server:/export`,
    `-----BEGIN OPENSSH PRIVATE KEY-----\n${CANARY}\n-----END OPENSSH PRIVATE KEY-----`,
    `-----BEGIN PRIVATE KEY-----\ncut off ${CANARY}`,
    `eyJhbGciOi.${CANARY}.signature`,
  ])('has no secret of the form %j', (text) => {
    expect(redactText(text)).not.toContain(CANARY)
    expect(redactText(text)).toContain('[redacted]')
    expect(redactText(`before it\n${text}`)).not.toContain(CANARY)
  })

  it.each([
    '/var/lib/kubelet/pods/0b0ba6c6/volumes/modekeep~fs/data',
    'server:/export/data',
    'user@server:/export',
    'rw,relatime,user_id=0,group_id=0,vers=3.1.1,addr=10.0.0.1,uid=0,gid=2000',
    '//server/share',
    'the Secret has no key "username": add it',
    'option "mountOptions" has password: put username, password and domain into a secret',
    'https://kubernetes.io/docs',
    '2026-11-30T13:40:00.000Z',
  ])('keeps %j', (text) => {
    if (text.includes('has password:')) expect(redactText(text)).toContain('option "mountOptions" has password: ')
    else expect(redactText(text)).toBe(text)
  })

  it.each(['a', '/', '//', ':', 'a:', '"', "'", '\\', 'token=', '--token ', '"token":"', 'eyJ-', '@a:', 'a=,', ' '])(
    'of 256 KiB of %j is redacted in linear time',
    (piece) => {
      const text = piece.repeat(2 ** 18 / piece.length)
      expect(redactText(`${text}@${text}`).length).toBeGreaterThan(0)
    },
  )
})

describe('a JSON value in a support bundle', () => {
  it('has no value of a key that is named after a secret, at any depth, and keeps booleans', () => {
    const value = {
      password: CANARY,
      hadSecrets: true,
      count: 5,
      secrets: { inner: { deeper: [CANARY, 7] } },
      'kubernetes.io/secret/key': CANARY,
      apiKey: CANARY,
      'api-key': CANARY,
      mountOptions: ['vers=3.0', `password=${CANARY}`],
      text: JSON.stringify({ request: { token: CANARY } }),
      [`//bob:${CANARY}@server`]: null,
    }
    const redacted = redactValue(value)
    expect(JSON.stringify(redacted)).not.toContain(CANARY)
    expect(redacted).toMatchObject({
      hadSecrets: true,
      count: 5,
      secrets: { inner: { deeper: ['[redacted]', '[redacted]'] } },
      mountOptions: ['vers=3.0', 'password=[redacted]'],
    })
  })

  it('has no names of files inside volumes', () => {
    const skipped = { applied: 6, total: 7, reasons: [{ reason: 'append-only', count: 1, example: 'my file' }] }
    const value = { volumes: [{ skipped }], left: { immutable: { count: 2, examples: ['my file', 'my other file'] } } }
    const text = JSON.stringify(redactValue(value))
    expect(text).not.toContain('my')
    expect(text).toContain('append-only')
    expect(JSON.stringify(redactValue({ skipped: 'was applied to 6 of 7 (first "my file")' }))).not.toContain('my')
  })

  it('that is damaged, or nested too deeply, is redacted as text', () => {
    expect(redactDocument(`{"password": "${CANARY}", "directory"`)).toBe('{"password": [redacted], "directory"')
    const deep = `${'['.repeat(100_000)}"password=${CANARY}"${']'.repeat(100_000)}`
    expect(redactDocument(deep)).not.toContain(CANARY)
  })
})

it('a line of mountinfo keeps its other fields and options if one is a secret', () => {
  const line = (source: string, options: string) => `36 35 0:50 / /mnt rw,noatime shared:1 - cifs ${source} ${options}`
  expect(
    redactMountinfoLine(line(`//bob:${CANARY}@server/share`, `rw,username=bob,password=${CANARY}\\0542,vers=3.0`)),
  ).toBe(line('//[redacted]@server/share', 'rw,username=[redacted],password=[redacted],vers=3.0'))
})
