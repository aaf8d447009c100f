declare const brand: unique symbol

/** An inode or a detached mount held open. Only a Host makes and closes them; nothing is ever reopened by name. */
export type Handle = number & { readonly [brand]: 'handle' }

/** One path component as the bytes the kernel keeps: no slash, no NUL, any encoding. */
export type Name = Uint8Array

/** Closes a handle at the end of the block, whatever happens: `using _ = closing(inodes, handle)`. */
export function deferClose(inodes: { close(handle: Handle): void }, handle: Handle | undefined): Disposable {
  return { [Symbol.dispose]: () => handle !== undefined && inodes.close(handle) }
}

/** What is made of a handle, which whoever gets the result closes; closed here where that throws. */
export function useOrClose<T>(inodes: { close(handle: Handle): void }, handle: Handle, use: (handle: Handle) => T): T {
  try {
    return use(handle)
  } catch (error) {
    inodes.close(handle)
    throw error
  }
}
