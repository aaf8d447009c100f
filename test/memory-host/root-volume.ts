import { Volume } from 'memfs'

/**
 * A volume whose files belong to root and whose permissions root is not held by, whoever runs the tests: memfs gives an
 * inode to the process's own user, and asks that user's rights at every open.
 */
export function rootVolume(): Volume {
  const volume = new Volume()
  const { _core: core } = volume
  const create = core.createNode.bind(core)
  core.createNode = (mode) => rooted(create(mode))
  rooted(core.root.getNode())
  return volume
}

type Node = ReturnType<Volume['_core']['createNode']>

function rooted(node: Node): Node {
  node.uid = 0
  node.gid = 0
  return Object.assign(node, { canRead: () => true, canWrite: () => true, canExecute: () => true })
}
