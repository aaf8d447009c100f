import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { BINARY } from '../../helpers/node-directory.ts'
import { run } from '../cases/node.ts'

const SELINUX = '/sys/fs/selinux'
const POLICY = process.env.MODEKEEP_LAB_POLICY
/** A copy of the executable with the label of kubelet's plugins, since the guest's root has no labels. */
const EXECUTABLE = '/run/modekeep-lab-executable'

/** Returns why no policy can be loaded; empty if it can. */
export function explainMissingSelinux(): string {
  if (POLICY === undefined) return 'only the lab has a policy; run "sudo npm run test:vm -- --boot selinux"'
  return fs.existsSync(SELINUX) ? '' : 'this kernel has no SELinux'
}

/** Loads Debian's policy with the lab's rules, and enforces it. */
export function enforcePolicy(): void {
  if (!fs.existsSync(`${SELINUX}/load`)) run('mount', '-t', 'selinuxfs', 'selinuxfs', SELINUX)
  // The kernel takes a policy in one write(2).
  const policy = fs.readFileSync(`${POLICY}/policy`)
  const file = fs.openSync(`${SELINUX}/load`, 'w')
  if (fs.writeSync(file, policy) !== policy.length) throw new Error('the kernel did not take the complete policy')
  fs.closeSync(file)
  // libselinux takes SELinux for absent without this file.
  fs.mkdirSync('/etc/selinux', { recursive: true })
  fs.writeFileSync('/etc/selinux/config', 'SELINUXTYPE=default\n')
  // No denial is left out of the kernel's log.
  fs.writeFileSync('/proc/sys/kernel/printk_ratelimit', '0')
  fs.copyFileSync(BINARY, EXECUTABLE)
  labelTree('kubernetes_plugin_t', EXECUTABLE)
  fs.writeFileSync(`${SELINUX}/enforce`, '1')
}

/** Allows what a boolean of the lab's rules allows, until the test has finished. */
export function allowUntilEnd(...booleans: string[]): void {
  const set = (value: string) => {
    for (const name of booleans) fs.writeFileSync(`${SELINUX}/booleans/${name}`, value)
    fs.writeFileSync(`${SELINUX}/commit_pending_bools`, '1')
  }
  set('1')
  onTestFinished(() => set('0'))
}

/** Returns a wrapper for calls of modekeep (`NodeDirectory.wrapper`) that runs them in a domain. */
export function createDomainWrapper(domain: string): string[] {
  return ['/bin/sh', '-c', `shift; exec runcon system_u:system_r:${domain}:s0 ${EXECUTABLE} "$@"`, 'sh']
}

export const createContext = (type: string, level = 's0') => `system_u:object_r:${type}:${level}`

/** Labels paths and all below them. */
export function labelTree(type: string, ...paths: string[]): void {
  run('chcon', '--recursive', '--no-dereference', createContext(type), ...paths)
}

/** An access of modekeep that the policy denied, or allowed and logged. */
export interface LoggedAccess {
  verdict: string
  domain: string
  /** `file { map } kubernetes_tmpfs_t`: the class, the permissions and the type of the object. */
  access: string
}

/** Returns the accesses that were logged since the last call, and empties the kernel's log. */
export async function takeLoggedAccesses(): Promise<LoggedAccess[]> {
  // A thread of the kernel writes the messages of the audit into the log.
  await setTimeout(300)
  return parseLoggedAccesses(spawnSync('dmesg', ['--read-clear'], { encoding: 'utf8' }).stdout)
}

/** Leaves out the guest's own processes, which have the domain kernel_t. */
export function parseLoggedAccesses(log: string): LoggedAccess[] {
  return log.split('\n').flatMap((line) => {
    const [, verdict = '', permissions = ''] = /avc: +(denied|granted) +\{ (.*?) \}/.exec(line) ?? []
    const [, domain = ''] = / scontext=\w+:\w+:(\w+)/.exec(line) ?? []
    const [, type = '', className = ''] = / tcontext=\w+:\w+:(\w+)\S* tclass=(\w+)/.exec(line) ?? []
    if (verdict === '' || domain === 'kernel_t') return []
    return [{ verdict, domain, access: `${className} { ${permissions} } ${type}` }]
  })
}
