import { open } from 'node:fs/promises'

/** Only an open tells: the node may be there without its kernel module, or be denied by the device cgroup. @returns why not */
export async function whyUnhealthy(device: string): Promise<string | undefined> {
  try {
    const handle = await open(device, 'r+')
    try {
      return (await handle.stat()).isCharacterDevice() ? undefined : `${device} is not a character device`
    } finally {
      await handle.close()
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
