#!/bin/sh
# The session of the README's picture: modekeep, and the real tools beside it, on a volume of its own, in a terminal.
# Its mounts and records are in a mount namespace, and go with it. Wants root, and the directory of the executable.
set -eu
PATH=$1:$PATH
export PATH

mount -t tmpfs -o mode=0755 session /srv
mount -t tmpfs -o mode=0755 session /var/lib
mount -t tmpfs -o mode=0755 session /var/log
export MODEKEEP_CONFIG=/srv/config.json
echo '{}' >"$MODEKEEP_CONFIG"
# A directory shows its entries in the order in which they were made, the last first (tmpfs).
mkdir -p /srv/volumes/shop/tls
cd /srv/volumes/shop
for file in 'index.html 0644' 'tls/server.key 0600' 'tls/server.crt 0644' 'backup.sh 0750' '.pgpass 0600'; do
  echo data >"${file% *}"
  chmod "${file#* }" "${file% *}"
done
chown -R 70:70 .
stty cols 80 rows 40

typed() {
  printf '# %s\n' "$1"
  sh -c "$1"
}

typed 'modekeep plan /srv/volumes/shop --fsgroup 2000'
echo
typed 'modekeep apply /srv/volumes/shop --fsgroup 2000'
typed "stat -c '%A %u %g %n' tls/server.key"
echo
typed 'modekeep restore /srv/volumes/shop'
typed "stat -c '%A %u %g %n' tls/server.key"
