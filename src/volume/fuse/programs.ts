import type { Source } from '../../request/source.ts'
import { createRules, NUMBER, type OptionRule, type OptionRules, rule, words } from '../kind/options.ts'
import { createSshLogin, findSshSourceFaults } from './sshfs.ts'

const SECONDS = /[0-9]{1,9}(?:\.[0-9]{1,6})?/
const YES_OR_NO = /yes|no/

/** What lets a pod's user pass for another, or gives him bits: the node's configuration has to name it. */
function markRisky([name, plain]: readonly [string, OptionRule]): readonly [string, OptionRule] {
  return [name, { ...plain, isRisky: true }]
}

/** What libfuse itself takes, for whatever program (mount.fuse3(8)). */
const GENERIC = createRules(() => [
  markRisky(rule('uid=1000', NUMBER)),
  rule('gid=1000', NUMBER),
  markRisky(rule('umask=007', /[0-7]{3,4}/)),
  rule('attr_timeout=1.0', SECONDS),
  rule('entry_timeout=1.0', SECONDS),
  rule('negative_timeout=0', SECONDS),
  rule('max_read=131072', NUMBER),
  ...words('kernel_cache', 'auto_cache', 'noauto_cache', 'direct_io', 'noforget', 'hard_remove'),
])

interface FuseProgram {
  /**
   * What else it takes. Nothing here runs a command of the node, reads or writes a file of it that is not the source,
   * or connects anywhere else than the source says.
   */
  options: () => OptionRules
  /** Where its source is no path of the node. */
  sourceFaults?(source: Source): string[]
  /** How it proves who it is, by secrets. */
  login?: typeof createSshLogin
}

const SSHFS: FuseProgram = {
  sourceFaults: findSshSourceFaults,
  login: createSshLogin,
  // sshfs(1). Not here: ssh_command, sftp_server, directport, delay_connect, idmap=file, and all files of ssh's.
  options: createRules(() => [
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
}

const BINDFS: FuseProgram = {
  // bindfs(1). Not here: resolve-symlinks, which leads out of the source; map-passwd and map-group, which are files.
  options: createRules(() => [
    markRisky(rule('force-user=1000', NUMBER)),
    rule('force-group=1000', NUMBER),
    markRisky(rule('perms=u=rwX:g=rX', /[0-7]{3,4}|[ugoarwxXstdDF=+:-]{1,80}/)),
    markRisky(rule('map=1000/2000:@100/@200', /@?[0-9]{1,10}\/@?[0-9]{1,10}(?::@?[0-9]{1,10}\/@?[0-9]{1,10})*/)),
    markRisky(rule('create-for-user=1000', NUMBER)),
    markRisky(rule('create-for-group=1000', NUMBER)),
    markRisky(rule('create-with-perms=u=rw:g=r', /[0-7]{3,4}|[ugoarwxXstdDF=+:-]{1,80}/)),
    ...words('create-as-user').map(markRisky),
    ...words('chown-ignore', 'chgrp-ignore', 'chmod-ignore', 'xattr-none', 'delete-deny'),
    ...words('rename-deny', 'hide-hard-links', 'multithreaded'),
  ]),
}

/**
 * Programs of which modekeep knows which of their options are safe: the node's configuration can only take some away.
 * By name, fuse.<program> without the prefix.
 */
export const PROGRAMS: ReadonlyMap<string, FuseProgram> = new Map([
  ['sshfs', SSHFS],
  ['bindfs', BINDFS],
  ['squashfuse', { options: createRules(() => [rule('offset=4096', NUMBER)]) }],
])

/** What is known of a program's options; any other program takes what a rule of the node names. */
export function readFuseRules(program: string): OptionRules {
  return new Map([...GENERIC(), ...(PROGRAMS.get(program)?.options() ?? [])])
}
