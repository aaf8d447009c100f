import { Volume } from 'memfs'

/**
 * A volume whose files belong to root, and on which root's access is never denied, whichever user runs the tests. memfs
 * gives inodes to the process's own user, and checks that user's rights on every open.
 */
export function rootVolume(): Volume {
  const volume = new Volume()
  const { _core: core } = volume
  const create = core.createNode.bind(core)
  core.createNode = (mode) => giveToRoot(create(mode))
  giveToRoot(core.root.getNode())
  return volume
}

type Node = ReturnType<Volume['_core']['createNode']>

function giveToRoot(node: Node): Node {
  node.uid = 0
  node.gid = 0
  return Object.assign(node, { canRead: () => true, canWrite: () => true, canExecute: () => true })
}
