declare const brand: unique symbol

/** An open inode or detached mount. Only a Host opens and closes handles. modekeep never reopens one by name. */
export type Handle = number & { readonly [brand]: 'handle' }

/** One path component in the kernel's bytes: no slash, no NUL, any encoding. */
export type Name = Uint8Array

/** Closes a handle at the end of the block, also after an error: `using _ = deferClose(inodes, handle)`. */
export function deferClose(inodes: { close(handle: Handle): void }, handle: Handle | undefined): Disposable {
  return { [Symbol.dispose]: () => handle !== undefined && inodes.close(handle) }
}

/** Passes a handle to `use`, whose result takes over the handle. Closes the handle if `use` throws. */
export function useOrClose<T>(inodes: { close(handle: Handle): void }, handle: Handle, use: (handle: Handle) => T): T {
  try {
    return use(handle)
  } catch (error) {
    inodes.close(handle)
    throw error
  }
}
