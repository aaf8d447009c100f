import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { FUSE_RESOURCE_NAME } from '../../../src/frontends/device-plugin/server.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const MANIFESTS = join(ROOT, 'driver/kubernetes/device-plugin')
const PROFILE = join(ROOT, 'driver/apparmor/modekeep-fuse')

const manifest = (name: string) => parse(fs.readFileSync(join(MANIFESTS, name), 'utf8'), { strict: true })
const profile = fs.readFileSync(PROFILE, 'utf8')

describe('the example pod', () => {
  const { spec } = manifest('example-pod.yaml')
  const [container] = spec.containers

  it('has CAP_SYS_ADMIN and the FUSE device, and is not privileged', () => {
    expect(container.securityContext.privileged).toBeUndefined()
    expect(container.securityContext.capabilities).toEqual({ drop: ['ALL'], add: ['SYS_ADMIN'] })
    expect(container.resources).toEqual({ limits: { [FUSE_RESOURCE_NAME]: 1 } })
    expect(spec.volumes).toEqual([{ name: 'mount-point', emptyDir: {} }])
  })

  it("is confined by the AppArmor profile, which allows the pod's FUSE mount", () => {
    expect(container.securityContext.appArmorProfile).toEqual({ type: 'Localhost', localhostProfile: 'modekeep-fuse' })
    expect(profile).toMatch(/^profile modekeep-fuse /m)
    expect(profile.match(/^@\{fuse_mounts\}=(.*)$/m)?.[1]?.split(' ')).toContain(
      `${container.volumeMounts[0].mountPath}/`,
    )
    expect(container.command.at(-1)).toBe(container.volumeMounts[0].mountPath)
  })
})

const FEATURES = '/etc/apparmor.d/abi/3.0'
const PARSER = ['/usr/sbin/apparmor_parser', '/sbin/apparmor_parser'].find((path) => fs.existsSync(path))
const hasParser = PARSER !== undefined && fs.existsSync(FEATURES)
const suffix = hasParser ? '' : ' (needs apparmor_parser: apt-get install apparmor)'

/** The compiler's exit status, and the rules as it understood them, for a kernel that asks AppArmor about mounts. */
function compile(text: string): { status: number | null; rules: string } {
  const directory = fs.mkdtempSync(join(tmpdir(), 'modekeep-apparmor-'))
  try {
    fs.writeFileSync(join(directory, 'profile'), text)
    const flags = [
      '--skip-kernel-load',
      '--skip-cache',
      `--kernel-features=${FEATURES}`,
      `--policy-features=${FEATURES}`,
    ]
    const { status, stdout, stderr } = spawnSync(
      PARSER ?? '',
      [...flags, '-D', 'rule-exprs', join(directory, 'profile')],
      {
        encoding: 'latin1',
        maxBuffer: 1 << 28,
      },
    )
    return { status, rules: stdout + stderr }
  } finally {
    fs.rmSync(directory, { recursive: true })
  }
}

/** The class that mediates mounts. */
const mountRules = (rules: string) => rules.split('\n').filter((line) => line.startsWith('rule: \\x07'))

describe.skipIf(!hasParser)(`the AppArmor profile${suffix}`, () => {
  it('is accepted by the compiler', () => {
    expect(compile(profile).status).toBe(0)
    expect(compile(profile.replace('mount fstype=', 'mount fstyp=')).status).not.toBe(0)
  })

  it('allows only FUSE mounts in the permitted places, and unmounts there', () => {
    const rules = mountRules(compile(profile).rules)
    expect(rules).toHaveLength(2)
    for (const rule of rules)
      expect(rule).toContain('\\x07(/mnt/|/mnt/[^/\\x00][^\\x00]*/|/data/|/data/[^/\\x00][^\\x00]*/)')
    expect(rules.filter((rule) => rule.includes('\\x00(fuse|fuse\\.[^/\\x00]*)\\x00'))).toHaveLength(1)
    // The same look sees it when any mount is allowed.
    expect(mountRules(compile(profile.replace(/mount fstype=\S+ \S+/, 'mount')).rules).join()).not.toContain('(fuse|')
  })
})
