/** A volume that is worked on by hand. Modes in documents are decimal numbers of permission bits. */
export interface About {
  directory: string
  /** Names the volume across reboots and paths. */
  volume: string
}

/** What apply is asked to give. */
export interface Asked extends About {
  group: number
  groupAccess: 'keep' | 'grant'
  policy: 'OnRootMismatch' | 'Always'
}
