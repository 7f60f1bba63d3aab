# repmgr's extension lies where PostgreSQL looks for it, and no two servers share a directory of sockets or
# shared memory, for the processes below this one only.
set -e
for place in /usr/share/postgresql/15/extension /usr/lib/postgresql/15/lib; do
  mount -t overlay overlay -o lowerdir={packages.directory}$place:$place $place
done
mkdir -p /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /var/run/postgresql
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
uid=$(stat -c %u {self.directory})
user="setpriv --reuid=$uid --regid=$(stat -c %g {self.directory}) --clear-groups"
# A clock that steps, in the variant that has one: that of repmgrd and the server.
as=$user
if [ -n "{preload}" ]; then
  echo +0 >{self.directory}/clock
  chown --reference={self.directory} {self.directory}/clock
  as="$user env LD_PRELOAD={preload} FAKETIME_TIMESTAMP_FILE={self.directory}/clock FAKETIME_CACHE_DURATION=1 DONT_FAKE_MONOTONIC=1"
fi
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
repmgr_bindir='{packages.directory}/usr/lib/postgresql/15/bin'
pg_ctl_options='--log {self.directory}/server.log'
ssh_options='-q -p 2222 -i {db1.directory}/ssh -o ConnectTimeout=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'
failover='automatic'
promote_command='{packages.directory}/usr/lib/postgresql/15/bin/repmgr -f $conf standby promote'
follow_command='{packages.directory}/usr/lib/postgresql/15/bin/repmgr -f $conf standby follow --upstream-node-id=%n'
monitor_interval_secs=2
reconnect_attempts={reconnect_attempts}
reconnect_interval={reconnect_interval}
END
chmod 644 $conf

# A switchover of repmgr goes to the other machine by ssh: an sshd for the user of the servers, who can log
# in here and works in the machine's directory. All three machines have one key. It ends with this script.
awk -F: -v OFS=: -v uid=$uid '$3 == uid { $6 = "{self.directory}"; $7 = "/bin/sh" } 1' /etc/passwd >/var/run/postgresql/passwd
mount --bind /var/run/postgresql/passwd /etc/passwd
key() {
  test -e $1 || $user {packages.directory}/usr/bin/ssh-keygen -q -t ed25519 -N "" -f $1
}
key {self.directory}/hostkey
if [ $name = db1 ]; then
  key {self.directory}/ssh
fi
$user --pdeathsig KILL {packages.directory}/usr/sbin/sshd -D -e -f $PWD/sshd_config &

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
