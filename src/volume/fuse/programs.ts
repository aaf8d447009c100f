import type { Fault } from '../../errors/fault.ts'
import type { Source } from '../../request/source.ts'
import { createRulesOnce, NUMBER, type OptionRule, type OptionRules, rule, words } from '../kind/options.ts'
import { createSshLogin, findSshSourceFaults } from './sshfs.ts'

const SECONDS = /[0-9]{1,9}(?:\.[0-9]{1,6})?/
const YES_OR_NO = /yes|no/

/** Marks an option that changes a user's identity or permission bits: the node's configuration must name it. */
function markRisky([name, plain]: readonly [string, OptionRule]): readonly [string, OptionRule] {
  return [name, { ...plain, isRisky: true }]
}

/** Options of libfuse itself, for every program (mount.fuse3(8)). */
const GENERIC = createRulesOnce(() => [
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
   * The program's own options. None of them runs a command of the node, accesses a file of the node other than the source,
   * or connects to a host other than the source's.
   */
  options: () => OptionRules
  /** Checks the source of a program whose source is no path of the node. */
  sourceFaults?(source: Source): Fault[]
  /** Creates the program's login from secrets. */
  login?: typeof createSshLogin
}

const SSHFS: FuseProgram = {
  sourceFaults: findSshSourceFaults,
  login: createSshLogin,
  // sshfs(1). Not here: ssh_command, sftp_server, directport, delay_connect, idmap=file, and all files of ssh's.
  options: createRulesOnce(() => [
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
  options: createRulesOnce(() => [
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
 * Programs whose safe options modekeep lists: the node's configuration can only remove some. The key is the fsType without
 * the prefix `fuse.`.
 */
export const PROGRAMS: ReadonlyMap<string, FuseProgram> = new Map([
  ['sshfs', SSHFS],
  ['bindfs', BINDFS],
  ['squashfuse', { options: createRulesOnce(() => [rule('offset=4096', NUMBER)]) }],
])

/** Returns a program's option rules. A program without an entry also takes the options that a rule of the node names. */
export function readFuseRules(program: string): OptionRules {
  return new Map([...GENERIC(), ...(PROGRAMS.get(program)?.options() ?? [])])
}
