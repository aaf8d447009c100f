// statfs' f_type: include/uapi/linux/magic.h
export const BTRFS_SUPER_MAGIC = 0x9123683e
export const EXT4_SUPER_MAGIC = 0xef53
export const F2FS_SUPER_MAGIC = 0xf2f52010
export const FUSE_SUPER_MAGIC = 0x65735546
export const XFS_SUPER_MAGIC = 0x58465342
