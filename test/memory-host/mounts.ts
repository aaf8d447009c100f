import { type Handle, type MountOperations, SystemError } from '../../src/kernel/host.ts'
import { type MemoryMount, type MemoryWorld, parseDeviceNumber } from './world.ts'

export function memoryMounts(world: MemoryWorld): MountOperations {
  const detached = (tree: Handle): MemoryMount => {
    const { mount } = world.at(tree)
    if (mount.at) throw new SystemError('move_mount', 'EINVAL', 'a mount that is attached')
    return mount
  }

  return {
    cloneTree(source) {
      const { mount, path } = world.at(source)
      world.act('clone-tree')
      const clone = world.addMount(mount.fileSystem, path)
      clone.flags = mount.flags
      clone.ids = mount.ids
      return world.open({ mount: clone, path })
    },

    createTree(fsType, options) {
      world.act(`create-tree ${[fsType, ...options].join(' ')}`)
      const fileSystem = world.addFileSystem()
      fileSystem.fs.chmodSync('/', 0o1777)
      return world.open({ mount: world.addMount(fileSystem, ''), path: '' })
    },

    setFlags(tree, { set, clear }) {
      const mount = detached(tree)
      world.act(`set-flags ${set.toString(16)} ${clear.toString(16)}`)
      mount.flags = (mount.flags & ~clear) | set
    },

    mapIds(tree, map) {
      const mount = detached(tree)
      if (!mount.fileSystem.mappable) throw new SystemError('mount_setattr', 'EINVAL', 'the new mount')
      if (mount.ids) throw new SystemError('mount_setattr', 'EPERM', 'the new mount')
      const moved = map.gids.filter(({ disk, shown }) => disk !== shown).map(({ disk, shown }) => `${disk}:${shown}`)
      world.act(`map-ids ${moved.join(' ')}`)
      mount.ids = map
    },

    attach(tree, target) {
      const mount = detached(tree)
      const { mount: on, path } = world.at(target)
      world.act('attach')
      mount.at = { mount: on, path }
    },

    attachBeneath(tree, target) {
      const mount = detached(tree)
      const { mount: top, path } = world.at(target)
      if (path !== top.root || !top.at) throw new SystemError('move_mount', 'EINVAL', 'no mount root')
      world.act('attach-beneath')
      mount.at = top.at
      top.at = { mount, path: mount.root }
      return true
    },

    unmount(parent, name) {
      this.detach(parent, name)
      return true
    },

    detach(parent, name) {
      const { mount, path } = world.child(world.at(parent), Buffer.from(name).toString())
      if (path !== mount.root || mount === world.rootMount) throw new SystemError('umount2', 'EINVAL', String(name))
      world.act('detach')
      mount.at = undefined
    },

    hasMountsOn: () => undefined,
    attributesOf: () => undefined,
    tableId: (handle) => Number(world.at(handle).mount.id),

    table() {
      const attached = world.mounts.filter((mount) => mount.at)
      return attached.map((mount) => formatRow(world, mount)).join('')
    },
  }
}

function formatRow(world: MemoryWorld, mount: MemoryMount): string {
  const parent = mount === world.rootMount ? mount.id : mount.at?.mount.id
  const place = world.pathOf({ mount, path: mount.root })
  const options = mount.ids ? 'rw,idmapped' : 'rw'
  return `${mount.id} ${parent} 0:${parseDeviceNumber(mount.fileSystem)} ${mount.root || '/'} ${place} ${options} - memory none rw\n`
}
