import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseConfig } from '../../src/config/config.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { SUPPORTED_DRIVERS, UNSUPPORTED_DRIVERS } from '../../src/migrate/drivers.ts'
import { migrateManifest } from '../../src/migrate/migrate.ts'
import { applyAllowRules } from '../../src/mount/permission.ts'
import { findVolumeKind, volumeKindLookup } from '../../src/volume/index.ts'
import { kubeletOptions, type Volume } from '../docs/example.ts'

const pv = (driver: string, options: string, more = '') => `apiVersion: v1
kind: PersistentVolume
metadata:
  name: files
spec:
  flexVolume:
    driver: ${driver}
    options:
${options.replaceAll(/^/gm, '      ')}
${more}`

const SECRET = '    secretRef:\n      name: login\n'

describe('migrate', () => {
  it('options of fstab/cifs are rewritten, and every other byte stays', () => {
    const text = `# Volumes of the shop
---
apiVersion:   v1
kind: Secret
metadata: { name: login }   # by hand
type: fstab/cifs
stringData: { username: bob, password: "secret, with comma" }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      volumes:

      - name: files
        # the old share
        flexVolume:
          driver: "fstab/cifs"    # on all nodes
          fsType: "cifs"
          secretRef:
            name: login
          options:
            networkPath: "//files.example.com/team"  # moved in May
            mountOptions: 'dir_mode=0755,file_mode=0644,noperm'
      - name: other
        emptyDir: {}
`
    const { text: done, left, volumes, secrets } = migrateManifest(text, 'web.yaml')
    expect(done).toBe(
      text
        .replace('type: fstab/cifs', 'type: modekeep/fs')
        .replace('driver: "fstab/cifs"', 'driver: "modekeep/fs"')
        .replace('networkPath:', 'source:'),
    )
    expect({ left, volumes, secrets }).toEqual({ left: [], volumes: 1, secrets: 1 })
    expect(migrateManifest(done, 'web.yaml')).toMatchObject({ text: done, volumes: 0, secrets: 0, left: [] })
  })

  it('server and share of juliohm/cifs become one source, and the group is applied as by that driver', () => {
    const { text, left, notes } = migrateManifest(
      pv('juliohm/cifs', 'opts: uid=1000,vers=3.0\nserver: my-host\n# below\nshare: /My Dir  # with a blank', SECRET),
      'pv.yaml',
    )
    expect(text).toBe(
      pv(
        'modekeep/fs\n    fsType: cifs',
        'mountOptions: "uid=1000,vers=3.0"\nsource: "//my-host/My Dir"\nownership: auto\n# below\n# with a blank',
        SECRET,
      ).replace('"uid=1000,vers=3.0"', 'uid=1000,vers=3.0'),
    )
    expect(left).toEqual([])
    expect(notes.map((note) => note.text)).toEqual([
      expect.stringContaining('"ownership: auto" gives the group'),
      expect.stringContaining('its Secret "login" is not here: its type must be modekeep/fs'),
      expect.stringContaining("a PersistentVolume's source cannot be changed where it exists: delete it first"),
    ])
  })

  it.each([
    ['k8s/nfs', 'server: nfs.example.com\nshare: exports/data', 'source: nfs.example.com:/exports/data', 'nfs'],
    ['k8s/nfs', 'share: /exports/data\nserver: nfs.example.com', 'source: nfs.example.com:/exports/data', 'nfs'],
    ['microsoft.com/smb', 'source: //a/b\nmountoptions: vers=3.0', 'source: //a/b\nmountOptions: vers=3.0', 'cifs'],
  ])('options of %s are rewritten: %j', (driver, options, wanted, fsType) => {
    const more = fsType === 'cifs' ? SECRET : ''
    const { text, left } = migrateManifest(pv(driver, options, more), 'pv.yaml')
    const [document] = parseAllDocuments(text)
    expect(document?.toJS().spec.flexVolume).toMatchObject({
      driver: 'modekeep/fs',
      fsType,
      options: parseAllDocuments(wanted)[0]?.toJS(),
    })
    expect(left).toEqual([])
  })

  it('manifests in JSON and in flow style are rewritten', () => {
    const volume = {
      driver: 'fstab/cifs',
      secretRef: { name: 'a' },
      options: { selinuxEnabled: 'false', mountOptions: '', networkPath: '//a/b' },
    }
    const text = JSON.stringify({ kind: 'Pod', spec: { volumes: [{ name: 'd', flexVolume: volume }] } })
    const done = migrateManifest(text, 'pod.json')
    expect(JSON.parse(done.text).spec.volumes[0].flexVolume).toEqual({
      driver: 'modekeep/fs',
      fsType: 'cifs',
      secretRef: { name: 'a' },
      options: { source: '//a/b' },
    })
    expect(done.left).toEqual([])
    const flow = 'flexVolume: {driver: k8s/nfs, options: {server: a, share: b}}\n'
    expect(migrateManifest(flow, 'f').text).toBe(
      'flexVolume: {driver: modekeep/fs, fsType: nfs, options: {source: "a:/b"}}\n'.replace('"a:/b"', 'a:/b'),
    )
  })

  it('each untranslated part of a volume is reported with key, value, reason and remedy', () => {
    const options =
      'networkPath: //a/b\nmountOptions: "sec=ntlm,password=geheim,_netdev,noperm,context=x"\nselinuxEnabled: "true"\npassword: geheim\ncolour: red'
    const { text, left, notes } = migrateManifest(pv('fstab/cifs', options), 'pv.yaml')
    expect(left.map((remark) => remark.text)).toEqual([
      expect.stringMatching(/^option "selinuxEnabled" is "true": .*: set "capabilities"/),
      expect.stringMatching(/^option "password" \(its value is not shown\): .* left out/),
      expect.stringMatching(/^option "colour" is "red": fstab\/cifs does not read it/),
      expect.stringMatching(/^option "mountOptions" has "sec=ntlm": modekeep takes it as sec=ntlmssp or /),
      expect.stringMatching(/^option "mountOptions" has "password" \(its value is not shown\): .* Secret/),
      expect.stringMatching(/^option "mountOptions" has "context=x": .*selinuxRelabel/),
      expect.stringMatching(/^it has no secretRef: .* username and password$/),
    ])
    expect(new Set(left.map(({ line, what }) => `${line} ${what}`))).toEqual(new Set(['6 PersistentVolume "files"']))
    expect(notes[0]).toMatchObject({ text: expect.stringContaining('["_netdev"]') })
    expect(JSON.stringify([left, notes])).not.toContain('geheim')
    expect(text).not.toContain('geheim')
    expect(text).toContain('mountOptions: "noperm"\n')
  })

  it.each(UNSUPPORTED_DRIVERS.flatMap(({ names }) => names))(
    'volumes of %s are not changed, and the remark names a replacement',
    (driver) => {
      const text = pv(driver, 'fsName: myfs\nclusterNamespace: rook')
      const done = migrateManifest(text, 'pv.yaml')
      expect(done.text).toBe(text)
      expect(done.left).toMatchObject([{ text: expect.stringMatching(/^driver ".*" stays: .*: use the CSI driver/) }])
    },
  )

  it.each([
    ['an unknown driver', pv('example.com/disk', 'a: b'), 'is none of fstab/cifs'],
    ['no server', pv('juliohm/cifs', 'share: /a'), 'write "server" and "share"'],
    ['no path', pv('fstab/cifs', 'mountOptions: vers=3.0'), 'write "networkPath"'],
    [
      'a source of another form',
      pv('fstab/cifs', String.raw`networkPath: \\a\b`, SECRET),
      'write it like //server/share',
    ],
    [
      'an alias',
      'x: &o {networkPath: //a/b}\nflexVolume:\n  driver: fstab/cifs\n  options: *o\n',
      'is written by an alias',
    ],
  ])('a volume with %s is not changed', (_what, text, why) => {
    const done = migrateManifest(text, 'pv.yaml')
    expect(done.text).toBe(text)
    expect(done.left.map((remark) => remark.text).join('\n')).toContain(why)
  })

  it('a syntax error is reported with its line number, without the text of the line', () => {
    expect(() => migrateManifest('a: {\nb: geheim: c\n', 'x.yaml')).toThrow(
      /^x\.yaml, line 2, column \d+, is not YAML \(/,
    )
    expect(() => migrateManifest('volumes:\n{{- if .Values.a }}\n', 'x.yaml')).toThrow('helm template')
  })

  it('line ends and block scalars are kept', () => {
    const text = (driver: string, key: string) =>
      `flexVolume:\r\n  driver: ${driver}\r\n  options:\r\n    ${key}: >-\r\n      //a/b\r\n    mountOptions: |\r\n      guest,\r\n      seal\r\n    # end\r\n`
    const wanted = text('modekeep/fs\r\n  fsType: cifs', 'source').replace(
      '|\r\n      guest,\r\n      seal',
      '"guest,seal"',
    )
    expect(migrateManifest(text('fstab/cifs', 'networkPath'), 'f').text).toBe(wanted)
  })
})

describe('rewritten manifests', () => {
  const volumes = SUPPORTED_DRIVERS.map(({ names, options, fsType, secretKeys }) => {
    const value = {
      source: '//server/share',
      server: 'server',
      path: 'share',
      mountOptions: fsType === 'nfs' ? 'hard,sec=krb5' : 'vers=3.0',
      nothing: 'false',
    }
    const written = Object.entries(options).map(([key, { to }]) => [key, value[to]])
    // Of two keys for one thing the second is left.
    const unique = written.filter(
      ([key], at) =>
        options[key ?? '']?.to === 'nothing' ||
        !written.slice(0, at).some(([other]) => options[other ?? '']?.to === options[key ?? '']?.to),
    )
    return {
      name: names[0] ?? '',
      text: pv(
        names[0] ?? '',
        unique.map(([key, text]) => `${key}: "${text}"`).join('\n'),
        secretKeys.length > 0 ? SECRET : '',
      ),
    }
  })

  it.each(volumes)('a node with the suggested rules accepts $name', ({ text }) => {
    const done = migrateManifest(text, 'pv.yaml')
    expect(done.left).toEqual([])
    const { config, faults } = parseConfig(JSON.stringify({ allow: done.allow }), 'the rules')
    expect(faults).toEqual([])
    const volume: Volume = { name: 'data', ...parseAllDocuments(done.text)[0]?.toJS().spec }
    const pod = { metadata: { name: 'pod' }, spec: { securityContext: { fsGroup: 2000 }, volumes: [volume] } }
    const request = parseFlexVolumeRequest(
      '/pod',
      JSON.stringify(kubeletOptions(pod, volume, {})),
      DEFAULT_CONFIG,
      volumeKindLookup,
    )
    const kind = findVolumeKind(request.fsType)
    if (kind === undefined) throw new Error('the migrated volume is of an unknown kind')
    expect(applyAllowRules({ config }, request, kind)).toHaveProperty('rule')
  })
})

describe('bounds of a manifest', () => {
  it.each([
    ['5,002 documents', '---\na: b\n'.repeat(5002), 'more than 5000 documents: split it'],
    ['lists in lists on one line', '- '.repeat(300), 'nests values more than 200 deep'],
    ['lists in lists in brackets', `a: ${'['.repeat(300)}${']'.repeat(300)}`, 'nests values more than 200 deep'],
    ['a duplicate key', 'a: 1\na: 2\n', 'm.yaml, line 2, column 1, is not YAML (duplicate key)'],
  ])('a manifest with %s is refused', (_, text, message) => {
    expect(() => migrateManifest(text, 'm.yaml')).toThrow(message)
  })

  it('a manifest with 5,000 documents or with 200 nested lists is accepted', () => {
    expect(migrateManifest('---\na: b\n'.repeat(5000), 'm.yaml').left).toEqual([])
    expect(migrateManifest(`a: ${'['.repeat(200)}${']'.repeat(200)}`, 'm.yaml').left).toEqual([])
  })
})
