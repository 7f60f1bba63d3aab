# repmgr's extension lies where PostgreSQL looks for it, and no two servers share a directory of sockets,
# for the processes below this one only.
set -e
for place in /usr/share/postgresql/15/extension /usr/lib/postgresql/15/lib; do
  mount -t overlay overlay -o lowerdir={packages.directory}$place:$place $place
done
mkdir -p /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /var/run/postgresql
as="setpriv --reuid=$(stat -c %u {self.directory}) --regid=$(stat -c %g {self.directory}) --clear-groups"
bin={postgres.bin} data={self.disk}/data conf={self.directory}/repmgr.conf
name={self.name}
repmgr="$as {packages.directory}/usr/lib/postgresql/15/bin/repmgr -f $conf"
start="$as $bin/pg_ctl --pgdata $data --log {self.directory}/server.log --wait start"
cat >$conf <<END
node_id=${name#db}
node_name='$name'
conninfo='host={self.address} port=5432 user=postgres dbname=postgres connect_timeout=2'
data_directory='$data'
pg_bindir='$bin'
failover='automatic'
promote_command='{packages.directory}/usr/lib/postgresql/15/bin/repmgr -f $conf standby promote'
follow_command='{packages.directory}/usr/lib/postgresql/15/bin/repmgr -f $conf standby follow --upstream-node-id=%n'
monitor_interval_secs=2
reconnect_attempts={reconnect_attempts}
reconnect_interval={reconnect_interval}
END
chmod 644 $conf
if [ ! -e $data/PG_VERSION ]; then
  if [ $name = db1 ]; then
    $as $bin/initdb --pgdata $data --username postgres --encoding UTF8 --data-checksums --auth trust
    printf '%s\n' "listen_addresses = '*'" "shared_buffers = 32MB" "max_wal_size = 256MB" "wal_keep_size = 128MB" \
      "wal_log_hints = on" "hot_standby = on" "shared_preload_libraries = 'repmgr'" >>$data/postgresql.conf
    printf '%s\n' "host replication all 0.0.0.0/0 trust" "host all all 0.0.0.0/0 trust" >>$data/pg_hba.conf
    $start
    $bin/psql -h {self.address} -U postgres -c "CREATE EXTENSION repmgr"
    $repmgr primary register
  else
    until $bin/psql -h {db1.address} -U postgres -tAc "SELECT 1 FROM repmgr.nodes WHERE node_id = 1" | grep -q 1; do sleep 0.5; done
    $repmgr -h {db1.address} -U postgres -d postgres standby clone --fast-checkpoint
    $start
    $repmgr standby register --force
  fi
else
  $start || true
fi
# repmgrd ends where no primary is there when it starts; a service manager starts it again.
while :; do
  $as {packages.directory}/usr/lib/postgresql/15/bin/repmgrd -f $conf --daemonize=false --no-pid-file || true
  sleep 1
done
