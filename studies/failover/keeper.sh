# No two servers share a directory of sockets or shared memory, for the processes below this one only.
set -e
mkdir -p /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
export XDG_RUNTIME_DIR={self.directory}/keeper XDG_CONFIG_HOME={self.directory}/keeper XDG_DATA_HOME={self.directory}/keeper
# A clock that steps, in the variant that has one: that of the keeper and the server.
clock=
if [ -n "{preload}" ]; then
  echo +0 >{self.directory}/clock
  chown --reference={self.directory} {self.directory}/clock
  clock="env LD_PRELOAD={preload} FAKETIME_TIMESTAMP_FILE={self.directory}/clock FAKETIME_CACHE_DURATION=1 DONT_FAKE_MONOTONIC=1"
fi
as="setpriv --reuid=$(stat -c %u {self.directory}) --regid=$(stat -c %g {self.directory}) --clear-groups $clock {packages.directory}/usr/bin/pg_autoctl"
is_monitored() {
  PGCONNECT_TIMEOUT=2 {postgres.bin}/psql -qAt -h {monitor.address} -U autoctl_node -d pg_auto_failover -c 'SELECT true' >/dev/null 2>&1
}
if [ ! -e {self.directory}/keeper/pg_autoctl ]; then
  until is_monitored; do sleep 0.2; done
  $as create postgres --pgdata {self.disk}/data --pgctl {postgres.bin}/pg_ctl --pgport 5432 --hostname {self.address} --name {self.name} --username postgres --dbname postgres --monitor "postgres://autoctl_node@{monitor.address}:5432/pg_auto_failover" --auth trust --pg-hba-lan --no-ssl
  $as config set --pgdata {self.disk}/data timeout.network_partition_timeout {network_partition_timeout}
else
  # A keeper ends for good if a monitor that starts rejects it five times in a second. Both start at once with
  # the cluster; later on a monitor may be gone for longer than this waits.
  for look in $(seq 50); do
    is_monitored && break
    sleep 0.2
  done
fi
exec $as run --pgdata {self.disk}/data
