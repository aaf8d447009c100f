/** Something of the kernel that modekeep uses, tried in a way that changes nothing of the node. */
export interface Feature {
  name: FeatureName
  works: boolean
  /** The kernel's answer where it does not. */
  detail: string
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

/** A system call whose answer was compared with Node's own, or that had to be refused. */
export interface SelfTest {
  name: string
  /** What was wrong; '' where nothing was. */
  difference: string
}

/** What `doctor` alone asks of a node. */
export interface Diagnosis {
  features(): Feature[]
  /** Of the kernel that runs, as uname(2) tells it. */
  release(): string
  selfTest(): SelfTest[]
  /** @returns its path. @throws {HelperError} naming the package that has it */
  findProgram(program: string): string
  /** What root may still use of the file system a path is on. `inodes` is undefined where they are not counted. */
  space(path: string): { bytes: number; inodes: number | undefined }
  isSameFile(one: string, other: string): boolean
  /** Whether somebody is seen to listen at a Unix socket. Nobody is called. */
  isListening(path: string): boolean
}
