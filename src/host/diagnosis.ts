/** Result of trying a kernel feature that modekeep uses. The trial changes nothing on the node. */
export interface Feature {
  name: FeatureName
  works: boolean
  /** The kernel's error if the feature does not work. */
  detail: string
  /** Its errno name. */
  errno?: string
}

export type FeatureName =
  | 'open_tree'
  | 'fsopen'
  | 'mount_setattr'
  | 'statx mount ids'
  | 'openat2'
  | 'user namespace'
  | 'idmapped mount'
  | 'MOVE_MOUNT_BENEATH'
  | 'fchmodat2'
  | 'unique mount ids'
  | 'FS_IOC_GETFSUUID'
  | 'listxattrat'

/** Result of a system call that was compared with Node's own, or that the addon must refuse. */
export interface SelfTest {
  name: string
  /** Empty if the results agree. */
  difference: string
}

/** The queries about a node that only `doctor` makes. */
export interface Diagnosis {
  features(): Feature[]
  /** Returns the running kernel's release, as uname(2) reports it. */
  release(): string
  selfTest(): SelfTest[]
  /** @returns the program's path @throws {HelperError} naming the package that contains it */
  findProgram(program: string): string
  /**
   * Returns the free space of the path's file system for root. `inodes` is undefined if the file system does not count
   * them.
   */
  space(path: string): { bytes: number; inodes: number | undefined }
  isSameFile(path: string, otherPath: string): boolean
  /** Checks for a listener at a Unix socket without connecting to it. */
  isListening(path: string): boolean
}
