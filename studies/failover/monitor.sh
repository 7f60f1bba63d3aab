# The monitor's extension lies where PostgreSQL looks for it, and no two servers share a directory of
# sockets or shared memory, for the processes below this one only.
set -e
for place in /usr/share/postgresql/15/extension /usr/lib/postgresql/15/lib; do
  mount -t overlay overlay -o lowerdir={packages.directory}$place:$place $place
done
mkdir -p /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
export XDG_RUNTIME_DIR={self.directory}/monitor XDG_CONFIG_HOME={self.directory}/monitor XDG_DATA_HOME={self.directory}/monitor
as="setpriv --reuid=$(stat -c %u {self.directory}) --regid=$(stat -c %g {self.directory}) --clear-groups {packages.directory}/usr/bin/pg_autoctl"
if [ ! -e {self.directory}/monitor/pg_autoctl ]; then
  $as create monitor --pgdata {self.disk}/data --pgctl {postgres.bin}/pg_ctl --pgport 5432 --hostname {self.address} --auth trust --no-ssl
  printf '%s\n' "pgautofailover.node_considered_unhealthy_timeout = '{node_considered_unhealthy_timeout}s'" \
    "pgautofailover.primary_demote_timeout = '{primary_demote_timeout}s'" >>{self.disk}/data/postgresql.conf
fi
exec $as run --pgdata {self.disk}/data
