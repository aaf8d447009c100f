import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { onTestFinished } from 'vitest'
import type { RequiredOptionNaming } from '../../src/config/allow.ts'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import type { MountRequest } from '../../src/config/mount-request.ts'
import { parseSource } from '../../src/config/source.ts'
import { renderFault } from '../../src/errors/fault.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import type { MountContext, VolumeKind } from '../../src/volume/kind/kind.ts'
import { findRequiredOptionNaming } from '../../src/volume/kind/options.ts'
import { createStagingName } from '../../src/volume/kind/staged.ts'
import { FakePrograms, RECORDING } from '../helper/fake-programs.ts'
import { NO_FS_GROUP } from '../helpers/mount-records.ts'

/** A fake mount.nfs or mount.cifs: it records its input, and mounts a tmpfs. */
export const MOUNTING = RECORDING.replace('exit 0', 'mount -t tmpfs -o mode=0750 fake "$2"')

// An unused module is not in the list.
spawnSync('modprobe', ['-qa', 'nfs', 'nfsv4', 'cifs'])
const KERNEL = fs.readFileSync('/proc/filesystems', 'utf8')

export function kernelHas(kind: string): boolean {
  return KERNEL.includes(`\t${kind}\n`)
}

/** For titles of tests: what they run against, and why. */
export function runsAgainst(kind: string): string {
  return kernelHas(kind)
    ? 'against a fake mount program; a real server has tests of its own'
    : `against a fake mount program, as this kernel has no ${kind} (/proc/filesystems)`
}

/** A request in which the source is written as its author writes it. */
export type Asked = Partial<Omit<MountRequest, 'source'>> & { source?: string }

export function requestFor({ source, ...over }: Asked): MountRequest {
  return {
    directory: '/pods/p/v',
    source: parseSource(source),
    fsType: '',
    mountOptions: [],
    readOnly: false,
    ownership: 'none',
    fsGroup: NO_FS_GROUP,
    restoreOnUnmount: false,
    ...over,
  }
}

export function secretsOf(values: Readonly<Record<string, string | Buffer>>): Map<string, Uint8Array> {
  return new Map(Object.entries(values).map(([key, value]) => [key, Buffer.from(value as string)]))
}

/** Makes a tree of a kind with fake helper programs, whose records are in `programs`. */
export class RemoteStage {
  readonly programs = new FakePrograms()
  readonly stateDir = fs.mkdtempSync(`${tmpdir()}/modekeep-remote-`)
  readonly #kind: VolumeKind

  constructor(kind: VolumeKind) {
    this.#kind = kind
    onTestFinished(() => fs.rmSync(this.stateDir, { recursive: true, force: true }))
  }

  making(request: Asked, over: Partial<MountContext> = {}): MountContext {
    return {
      host: { ...linuxHost, helpers: this.programs.helpers },
      request: requestFor({ fsType: this.#kind.name, ...request }),
      source: undefined,
      group: undefined,
      secrets: new Map(),
      stateDir: this.stateDir,
      staging: createStagingName(),
      timeoutSeconds: 30,
      tmpfsMaxSize: '64m',
      isVolume: () => false,
      warn: () => {},
      ...over,
    }
  }

  /** @returns the inode that the mount shows, and its mode */
  async open(request: Asked, over: Partial<MountContext> = {}): Promise<{ gid: number; mode: number }> {
    const making = this.making(request, over)
    const tree = await this.#kind.openTree(making)
    try {
      return making.host.inodes.stat(tree)
    } finally {
      making.host.inodes.close(tree)
    }
  }

  argv(): string[] {
    return this.programs.read('argv').split('\0').slice(0, -1)
  }

  mountOptions(): string[] {
    return this.argv()[3]?.split(',') ?? []
  }

  faults(request: Asked): string[] {
    return this.#kind
      .faults(requestFor({ fsType: this.#kind.name, ...request }), DEFAULT_CONFIG)
      .map((fault) => renderFault(fault))
  }

  /** How far a rule has to name an option. */
  naming(option: string): RequiredOptionNaming {
    return findRequiredOptionNaming(this.#kind.optionRules(), option)
  }
}
