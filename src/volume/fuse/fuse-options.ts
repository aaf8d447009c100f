import { ORDINARY_FLAGS } from '../../mount-table/flags.ts'
import type { NodeConfig } from '../../request/defaults.ts'
import { words } from '../kind/option-rules.ts'
import type { OptionRule, OptionRules } from '../kind/options.ts'

const rule = (example: string, value: RegExp): [string, OptionRule] => {
  const name = example.split('=', 1)[0] ?? ''
  return [name, { pattern: new RegExp(`^${name}=(?:${value.source})$`), example }]
}

const NUMBER = /0|[1-9][0-9]{0,9}/
const SECONDS = /[0-9]{1,9}(?:\.[0-9]{1,6})?/
const YES_OR_NO = /yes|no/

/** What libfuse itself takes, for whatever program (mount.fuse3(8)). */
const GENERIC: OptionRules = new Map([
  rule('uid=1000', NUMBER),
  rule('gid=1000', NUMBER),
  rule('umask=007', /[0-7]{3,4}/),
  rule('attr_timeout=1.0', SECONDS),
  rule('entry_timeout=1.0', SECONDS),
  rule('negative_timeout=0', SECONDS),
  rule('max_read=131072', NUMBER),
  ...words('kernel_cache', 'auto_cache', 'noauto_cache', 'direct_io', 'noforget', 'hard_remove'),
])

/**
 * What else these programs take. Nothing here runs a command of the node, reads or writes a file of it that is not the
 * source, or connects anywhere else than the source says.
 */
const KNOWN: Readonly<Record<string, OptionRules>> = {
  // sshfs(1). Not here: ssh_command, sftp_server, directport, delay_connect, idmap=file, and all files of ssh's.
  sshfs: new Map([
    rule('port=22', /[1-9][0-9]{0,4}/),
    rule('ServerAliveInterval=15', NUMBER),
    rule('ServerAliveCountMax=3', NUMBER),
    rule('ConnectTimeout=10', NUMBER),
    rule('Compression=yes', YES_OR_NO),
    rule('compression=yes', YES_OR_NO),
    rule('dir_cache=yes', YES_OR_NO),
    rule('dcache_timeout=20', NUMBER),
    rule('idmap=user', /none|user/),
    rule('max_conns=4', /[1-9][0-9]?/),
    ...words('reconnect', 'follow_symlinks', 'transform_symlinks', 'disable_hardlink', 'no_readahead', 'sshfs_sync'),
  ]),
  // bindfs(1). Not here: resolve-symlinks, which leads out of the source; map-passwd and map-group, which are files.
  bindfs: new Map([
    rule('force-user=1000', NUMBER),
    rule('force-group=1000', NUMBER),
    rule('perms=u=rwX:g=rX', /[0-7]{3,4}|[ugoarwxXstdDF=+:-]{1,80}/),
    rule('map=1000/2000:@100/@200', /@?[0-9]{1,10}\/@?[0-9]{1,10}(?::@?[0-9]{1,10}\/@?[0-9]{1,10})*/),
    rule('create-for-user=1000', NUMBER),
    rule('create-for-group=1000', NUMBER),
    rule('create-with-perms=u=rw:g=r', /[0-7]{3,4}|[ugoarwxXstdDF=+:-]{1,80}/),
    ...words('create-as-user', 'chown-ignore', 'chgrp-ignore', 'chmod-ignore', 'xattr-none', 'delete-deny'),
    ...words('rename-deny', 'hide-hard-links', 'multithreaded'),
  ]),
  squashfuse: new Map([rule('offset=4096', NUMBER)]),
}

/** What lets a pod's user pass for another, or gives him bits: the node's configuration has to name it. */
const RISKY: ReadonlySet<string> = new Set([
  ...['uid', 'umask', 'force-user', 'perms', 'map', 'create-for-user', 'create-for-group', 'create-with-perms'],
  'create-as-user',
])

/** The configuration with what is allowed of a fsType where it does not say so itself. */
export function withoutRisky(fsType: string, rules: OptionRules, config: NodeConfig): NodeConfig {
  if (Object.hasOwn(config.allowedMountOptions, fsType)) return config
  const allowed = [...ORDINARY_FLAGS, ...[...rules.keys()].filter((name) => !RISKY.has(name))]
  return { ...config, allowedMountOptions: { ...config.allowedMountOptions, [fsType]: allowed } }
}

/** fuse.<program> without the prefix. */
export const KNOWN_PROGRAMS: readonly string[] = Object.keys(KNOWN)

/** Programs of which modekeep knows which of their options are safe: the node's configuration can only take some away. */
export function isKnown(program: string): boolean {
  return Object.hasOwn(KNOWN, program)
}

/** For any other program, what the node's configuration names is its administrator's responsibility. */
export function fuseRules(program: string, { allowedMountOptions }: NodeConfig): OptionRules {
  const own = isKnown(program) ? KNOWN[program] : undefined
  if (own) return new Map([...GENERIC, ...own])
  const kind = `fuse.${program}`
  const named = Object.hasOwn(allowedMountOptions, kind) ? (allowedMountOptions[kind] ?? []) : []
  const freely = named
    .filter((name) => !GENERIC.has(name))
    .map((name): [string, OptionRule] => {
      const literal = name.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')
      return [name, { pattern: new RegExp(`^${literal}(=\\P{Cc}*)?$`, 'u'), example: name }]
    })
  return new Map([...GENERIC, ...freely])
}
