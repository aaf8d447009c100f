import { describe, expect, it } from 'vitest'
import { isSystemDirectory } from '../../src/fs-group/volume-by-hand.ts'

describe('a directory that a person names', () => {
  it.each(
    '/ /bin /boot/efi /dev /etc /etc/ssl /home /lib /lib64 /opt /root /run /sbin /srv /tmp /usr /usr/local/share /var /var/lib /var/lib/kubelet /var/log'.split(
      ' ',
    ),
  )("%s is the system's", (directory) => {
    expect(isSystemDirectory(directory)).toBe(true)
  })

  it.each(
    '/srv/volumes /srv/volumes/data /home/anna /opt/app /var/lib/postgresql /var/lib/kubelet/pods /data /usrdata /etcd /libvirt /run/volumes'.split(
      ' ',
    ),
  )("%s is somebody's data", (directory) => {
    expect(isSystemDirectory(directory)).toBe(false)
  })
})
