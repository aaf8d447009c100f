import { describe, expect, it } from 'vitest'
import { isSystemDirectory } from '../../src/fsgroup/refused-directories.ts'

describe('a directory argument of a command', () => {
  it.each(
    '/ /bin /boot/efi /dev /etc /etc/ssl /home /lib /lib64 /opt /root /run /sbin /srv /tmp /usr /usr/local/share /var /var/lib /var/lib/kubelet /var/log'.split(
      ' ',
    ),
  )('%s is a directory of the system, not a volume', (directory) => {
    expect(isSystemDirectory(directory)).toBe(true)
  })

  it.each(
    '/srv/volumes /srv/volumes/data /home/anna /opt/app /var/lib/postgresql /var/lib/kubelet/pods /data /usrdata /etcd /libvirt /run/volumes'.split(
      ' ',
    ),
  )('%s is not a directory of the system', (directory) => {
    expect(isSystemDirectory(directory)).toBe(false)
  })
})
