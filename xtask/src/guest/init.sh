#!/bin/busybox sh
# The first process of the guest: what a host has at start, then the run, then the end. It refuses to go on after it.
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /var /root /etc
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/pts /dev/shm /dev/net
/bin/busybox mount -t devpts pts /dev/pts
/bin/busybox ln -s /proc/self/fd /dev/fd
/bin/busybox ln -s /proc/self/fd/0 /dev/stdin
/bin/busybox ln -s /proc/self/fd/1 /dev/stdout
/bin/busybox ln -s /proc/self/fd/2 /dev/stderr
/bin/busybox mount -t tmpfs tmp /tmp
/bin/busybox mount -t tmpfs run /run
/bin/busybox ln -sfn /run /var/run
/bin/busybox --install -s /busybox
echo "127.0.0.1 localhost" > /etc/hosts
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/busybox HOME=/root TMPDIR=/tmp

for module in $(cat /guest/modules); do
    modprobe "$module" || echo "module $module is missing" > /dev/ttyS0
done
ip link set lo up
echo "up after $(cut -d' ' -f1 /proc/uptime) s: Linux $(uname -r)" > /dev/ttyS1
sh /guest/run > /dev/ttyS1 2>&1 < /dev/null
echo "guest ended with $?" > /dev/ttyS1
sync
poweroff -f
