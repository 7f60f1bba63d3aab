# No two servers share a directory of sockets, for the processes below this one only.
set -e
mkdir -p /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /var/run/postgresql
export XDG_RUNTIME_DIR={self.directory}/keeper XDG_CONFIG_HOME={self.directory}/keeper XDG_DATA_HOME={self.directory}/keeper
as="setpriv --reuid=$(stat -c %u {self.directory}) --regid=$(stat -c %g {self.directory}) --clear-groups {packages.directory}/usr/bin/pg_autoctl"
if [ -e {self.directory}/keeper/pg_autoctl ]; then
  exec $as run --pgdata {self.disk}/data
fi
exec $as create postgres --pgdata {self.disk}/data --pgctl {postgres.bin}/pg_ctl --pgport 5432 --hostname {self.address} --name {self.name} --username postgres --dbname postgres --monitor "postgres://autoctl_node@{monitor.address}:5432/pg_auto_failover" --auth trust --pg-hba-lan --no-ssl --run
